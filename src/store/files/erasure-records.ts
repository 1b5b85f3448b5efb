import { text } from 'node:stream/consumers';
import { chunksOf } from '../../lib/group.ts';
import { createdAt, idTime } from '../../lib/ids.ts';
import type { FileStore } from './file-store.ts';

/**
 * The erasure of a recipient, as far as it is stored outside the database: a database that is restored from an older backup does not
 * contain it. It holds hashes and no recipient.
 */
export interface ErasureRecord {
  readonly org_id: string;
  /** Keyed hashes of the recipient's address, or of its numbers and ids, as in `erased_recipients`. */
  readonly hashes: readonly Buffer[];
  /** The first data key of the organization, from which the key of the hashes is derived, sealed as in the database. */
  readonly data_key: Buffer;
}

const DAY_MS = 86_400_000;
/** A backup that is older than this must not be restored: the erasures since then are no longer known. */
const KEPT_FOR_MS = 365 * DAY_MS;
/** Files that are read concurrently. */
const READ_CONCURRENTLY = 16;

/**
 * Stores the record of an erasure. Repeated on one day, an erasure has one file: its id consists of the day and a hash.
 * @param now Unix milliseconds
 */
export async function storeErasure(
  files: FileStore,
  { org_id, hashes, data_key }: ErasureRecord,
  now: number,
): Promise<void> {
  const [first] = hashes;
  if (!first) throw new Error('an erasure has at least one hash');
  const id = `era_${idTime(now - (now % DAY_MS))}${first.toString('hex', 0, 8)}`;
  const toText = (bytes: Buffer) => bytes.toString('base64');
  await files.put(id, Buffer.from(JSON.stringify({ org_id, hashes: hashes.map(toText), data_key: toText(data_key) })));
}

/** Reads the records of all erasures. @returns one per organization, with the hashes of all its erasures and its latest data key */
export async function readErasures(files: FileStore): Promise<ErasureRecord[]> {
  const ids: string[] = [];
  let from: string | null = null;
  do {
    const page: Awaited<ReturnType<FileStore['list']>> = await files.list('era', from);
    ids.push(...page.ids);
    from = page.next;
  } while (from !== null);
  const byOrganization = new Map<string, { hashes: Buffer[]; data_key: Buffer }>();
  // In the order of their ids, which is that of their days.
  for (const chunk of chunksOf(ids.sort(), READ_CONCURRENTLY)) {
    for (const record of await Promise.all(chunk.map((id) => readErasure(files, id)))) {
      if (!record) continue;
      const { org_id, hashes, data_key } = record;
      const former = byOrganization.get(org_id);
      former?.hashes.push(...hashes);
      byOrganization.set(org_id, { hashes: former?.hashes ?? [...hashes], data_key });
    }
  }
  return [...byOrganization].map(([org_id, erased]) => ({ org_id, ...erased }));
}

/** @returns undefined if the record was deleted meanwhile */
async function readErasure(files: FileStore, id: string): Promise<ErasureRecord | undefined> {
  const stream = await files.open(id);
  if (!stream) return undefined;
  const stored = JSON.parse(await text(stream)) as { org_id: string; hashes: string[]; data_key: string };
  const toBytes = (value: string) => Buffer.from(value, 'base64');
  return { org_id: stored.org_id, hashes: stored.hashes.map(toBytes), data_key: toBytes(stored.data_key) };
}

/**
 * Deletes a page of records that are older than any backup may be.
 * @param now Unix milliseconds
 * @returns the number of deleted records, and the cursor of the next page
 */
export async function deleteOldErasures(
  files: FileStore,
  from: string | null,
  now: number,
): Promise<{ done: number; next: string | null }> {
  const { ids, next } = await files.list('era', from);
  const old = ids.filter((id) => createdAt(id) < now - KEPT_FOR_MS - DAY_MS);
  if (old.length > 0) await files.remove(old);
  return { done: old.length, next };
}
