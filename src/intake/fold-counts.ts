import { setTimeout as sleep } from 'node:timers/promises';
import { foldEmailMoves } from '../store/emails/hours.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { foldTags } from '../store/emails/tags.ts';

/** Milliseconds between two rounds: so many additions at most must be read with the counts. */
const EVERY = 1_000;
/** Additions per statement, so that none takes long. */
const AT_ONCE = 5_000;

/**
 * Keeps the counts of tags and of emails per hour short, for as long as it runs: additions become part of the counts
 * within a second or two. Nothing is lost while nobody does it; what reads the counts only takes longer.
 * @param onError told of the first of the rounds that fail one after the other; the next one comes all the same
 * @returns a function that ends it
 */
export function startFoldingCounts(pool: Pool, onError: (error: unknown) => void): () => Promise<void> {
  const ending = new AbortController();
  const running = (async () => {
    for (let failures = 0; !ending.signal.aborted;) {
      try {
        for (const fold of [foldTags, foldEmailMoves]) await foldAll(pool, fold, ending.signal);
        failures = 0;
      } catch (error) {
        if (failures++ === 0) onError(error);
      }
      await sleep(EVERY, undefined, { signal: ending.signal }).catch(() => undefined);
    }
  })();
  return () => {
    ending.abort();
    return running;
  };
}

async function foldAll(pool: Pool, fold: typeof foldTags, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && (await fold(pool, AT_ONCE)) === AT_ONCE);
}
