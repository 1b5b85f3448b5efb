import { makeSeal, type Seal } from '../lib/seal.ts';
import { deriveKeys, type KeyPurpose, type SecretKeys } from '../lib/secret-key.ts';
import type { Db } from '../store/postgres/pool.ts';
import { type EmailContents, makeEmailContents } from '../store/emails/contents.ts';
import {
  listSealedOtherwise,
  replaceSealed,
  SEALED_COLUMNS,
  type SealedColumn,
} from '../store/sealing/sealed-values.ts';
import { replaceUnsealedMessages, walkMessageContents } from '../store/messages/unsealed-contents.ts';
import { listUnsealed, replaceUnsealed } from '../store/emails/unsealed-contents.ts';

const PURPOSES: Readonly<Record<SealedColumn, KeyPurpose>> = {
  data_keys: 'data keys',
  webhook_secrets: 'webhook secrets',
  old_webhook_secrets: 'webhook secrets',
  older_webhook_secrets: 'webhook secrets',
  chat_credentials: 'chat credentials',
  account_links: 'account links',
  second_factors: 'second factors',
  dkim_keys: 'DKIM keys',
};

const VALUES_PER_STATEMENT = 500;

interface ResealCount {
  /** Values that are now sealed with the primary key. */
  resealed: number;
  /** Values that no key can open; they are unchanged. */
  unreadable: number;
}

/**
 * Reseals all values that are not sealed with the primary key. Works in small steps, so it can be interrupted and repeated while
 * the service runs. If another process changes a value meanwhile, that process seals it with the primary key.
 */
export async function reseal(
  db: Db,
  secretKeys: SecretKeys,
): Promise<Record<SealedColumn | 'email_contents' | 'message_contents', Pick<ResealCount, 'resealed'>>> {
  const counts: Partial<Record<SealedColumn, ResealCount>> = {};
  for (const column of SEALED_COLUMNS) {
    counts[column] = await resealColumn(db, column, makeSeal(deriveKeys(secretKeys, PURPOSES[column])));
  }
  const contents = makeEmailContents(secretKeys);
  const email_contents = { resealed: await sealContents(db, contents) };
  const message_contents = { resealed: await sealMessageContents(db, contents) };
  return { ...(counts as Record<SealedColumn, ResealCount>), email_contents, message_contents };
}

/**
 * Encrypts contents that were stored before encryption was introduced. Encrypted contents depend on a data key, not on
 * `SECRET_KEY`.
 */
async function sealContents(db: Db, contents: EmailContents): Promise<number> {
  let [count, after] = [0, ''];
  for (;;) {
    const unsealed = await listUnsealed(db, after, VALUES_PER_STATEMENT);
    const last = unsealed.at(-1);
    if (!last) return count;
    const sealed = [];
    for (const { id, org_id: orgId, ...content } of unsealed) {
      sealed.push({ id, ...(await contents.seal(db, orgId, id, content)) });
    }
    count += await replaceUnsealed(db, sealed);
    after = last.id;
  }
}

/** The same for chat-app messages and SMS. */
async function sealMessageContents(db: Db, contents: EmailContents): Promise<number> {
  let [count, after] = [0, ''];
  for (;;) {
    const walked = await walkMessageContents(db, after, VALUES_PER_STATEMENT);
    const last = walked.at(-1);
    if (!last) return count;
    const sealed = [];
    for (const { id, org_id: orgId, content } of walked) {
      if (content === null) continue;
      const sealed_content = await contents.sealMessage(db, orgId, id, content);
      sealed.push({ id, sealed_content, has_fallback: 'fallback_template' in content });
    }
    count += await replaceUnsealedMessages(db, sealed);
    after = last.id;
  }
}

async function resealColumn(db: Db, column: SealedColumn, seal: Seal): Promise<ResealCount> {
  const count: ResealCount = { resealed: 0, unreadable: 0 };
  let after = '';
  for (;;) {
    const values = await listSealedOtherwise(db, column, seal.prefix, after, VALUES_PER_STATEMENT);
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
