import type { Seal } from '../domain/seal.ts';
import { deriveKeys, type KeyPurpose, type SecretKeys } from '../domain/secret-key.ts';
import { makeSeal } from '../domain/seal.ts';
import type { Db } from '../store/pool.ts';
import { listSealedOtherwise, replaceSealed, SEALED_COLUMNS, type SealedColumn } from '../store/sealed-values.ts';

const PURPOSES: Readonly<Record<SealedColumn, KeyPurpose>> = {
  data_keys: 'data keys',
  webhook_secrets: 'webhook secrets',
  old_webhook_secrets: 'webhook secrets',
  chat_credentials: 'chat credentials',
  dkim_keys: 'DKIM keys',
};

/** Values that one statement replaces. */
const STEP_SIZE = 500;

export interface ResealCount {
  /** Sealed with the primary key now. */
  resealed: number;
  /** Left as they were: none of the keys opens them. */
  unreadable: number;
}

/**
 * Seals everything anew that is not sealed with the primary key. It works in steps of its own, so it may be interrupted and
 * run again, and the service may run meanwhile. Values that change while it reads them are sealed with the primary key by
 * the process that changes them.
 */
export async function reseal(db: Db, secretKeys: SecretKeys): Promise<Record<SealedColumn, ResealCount>> {
  const counts: Partial<Record<SealedColumn, ResealCount>> = {};
  for (const column of SEALED_COLUMNS) {
    counts[column] = await resealColumn(db, column, makeSeal(deriveKeys(secretKeys, PURPOSES[column])));
  }
  return counts as Record<SealedColumn, ResealCount>;
}

async function resealColumn(db: Db, column: SealedColumn, seal: Seal): Promise<ResealCount> {
  const count: ResealCount = { resealed: 0, unreadable: 0 };
  let after = '';
  for (;;) {
    const values = await listSealedOtherwise(db, column, seal.prefix, after, STEP_SIZE);
    const last = values.at(-1);
    if (!last) return count;
    const readable = values.flatMap((value) => {
      const secret = tryOpen(seal, value.sealed, value.about);
      return secret ? { ...value, resealed: seal.close(secret, value.about) } : [];
    });
    count.resealed += await replaceSealed(db, column, readable);
    count.unreadable += values.length - readable.length;
    after = last.id;
  }
}

function tryOpen(seal: Seal, sealed: Buffer, about: string): Buffer | undefined {
  try {
    return seal.open(sealed, about);
  } catch {
    return undefined;
  }
}
