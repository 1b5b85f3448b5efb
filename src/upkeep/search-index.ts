import { setTimeout as sleep } from 'node:timers/promises';
import { startLoop } from '../lib/background-loop.ts';
import {
  addSearchRanges,
  findUnindexed,
  insertTerms,
  lockSearchRange,
  recordNewest,
  recordOldest,
  readAfter,
  readBefore,
  readSettledTime,
  type UnindexedEmail,
} from '../store/emails/search-index.ts';
import { type Pool, transaction } from '../store/postgres/pool.ts';

/** A frequent term takes one row for this many emails. A search reads this many of the latest emails without an index. */
export const BLOCK_SIZE = 500;
const INTERVAL_MS = 1_000;
/** The loop pauses for this multiple of its working time, because accepting and sending have priority. */
const PAUSE_PER_WORK = 9;
const SETTLED_MS = 5_000;

interface IndexOptions {
  readonly blockSize: number;
  readonly settledMs: number;
  /** Called after each piece of work with the time that it took. */
  readonly pause?: (workedMs: number) => Promise<unknown>;
}

/**
 * Indexes the emails of all organizations until none has a whole block of unindexed emails.
 * @returns how many emails it indexed
 */
export async function indexEmails(
  pool: Pool,
  { blockSize, settledMs, pause = () => Promise.resolve() }: IndexOptions,
  signal?: AbortSignal,
): Promise<number> {
  let indexed = 0;
  const timed = async <T>(work: () => Promise<T>): Promise<T> => {
    const began = performance.now();
    const result = await work();
    await pause(performance.now() - began);
    return result;
  };
  let count: number;
  do {
    const settledAt = await readSettledTime(pool, settledMs);
    const orgIds = await timed(async () => {
      await addSearchRanges(pool, settledAt);
      return findUnindexed(pool, settledAt, blockSize);
    });
    count = 0;
    for (const orgId of orgIds) {
      if (signal?.aborted) break;
      count += await timed(() => indexBlock(pool, orgId, settledAt, blockSize));
    }
    indexed += count;
  } while (count > 0 && !signal?.aborted);
  return indexed;
}

/** Indexes a block of an organization: of new emails if there is a whole one, otherwise of old ones. @returns its size */
async function indexBlock(pool: Pool, orgId: string, settledAt: string, blockSize: number): Promise<number> {
  return transaction(pool, async (client) => {
    const range = await lockSearchRange(client, orgId);
    if (!range) return 0;
    const newest = { created_at: range.newest_at, id: range.newest_id };
    const following = await readAfter(client, orgId, newest, settledAt, blockSize);
    if (following.length === blockSize) {
      const block = ofOnePartition(following);
      await insertTerms(client, orgId, block);
      await recordNewest(client, orgId, block.at(-1) ?? newest);
      return block.length;
    }
    if (range.oldest_at === null) return 0;
    const before = { created_at: range.oldest_at, id: range.oldest_id };
    const block = ofOnePartition(await readBefore(client, orgId, before, blockSize)).toReversed();
    if (block.length > 0) await insertTerms(client, orgId, block);
    await recordOldest(client, orgId, block[0] ?? null);
    return block.length;
  });
}

/** Returns the first emails of a list that are in one partition, because a block is dropped with its partition. */
function ofOnePartition(emails: readonly UnindexedEmail[]): UnindexedEmail[] {
  const other = emails.findIndex(({ partition }) => partition !== emails[0]?.partition);
  return emails.slice(0, other < 0 ? emails.length : other);
}

/**
 * Indexes emails in the background. If it does not run, all are still found, but slower.
 * @param onError called for the first of consecutive failures; the loop continues
 * @returns a function that stops the loop
 */
export function startIndexingEmails(pool: Pool, onError: (error: unknown) => void): () => Promise<void> {
  const step = async (signal: AbortSignal): Promise<void> => {
    const pause = (workedMs: number) => sleep(PAUSE_PER_WORK * workedMs, undefined, { signal }).catch(() => undefined);
    await indexEmails(pool, { blockSize: BLOCK_SIZE, settledMs: SETTLED_MS, pause }, signal);
  };
  return startLoop(INTERVAL_MS, step, onError);
}
