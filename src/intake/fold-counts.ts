import { setTimeout as sleep } from 'node:timers/promises';
import { foldEmailMoves } from '../store/emails/hours.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { foldTags } from '../store/emails/tags.ts';

/** Bounds the additions that readers of the counts must add up. */
const INTERVAL_MS = 1_000;
/** Additions per statement, so that none is slow. */
const ADDITIONS_PER_STATEMENT = 5_000;

/**
 * Folds additions into the counts of tags and of emails per hour within a second or two. If it does not run, counts remain
 * correct but slower to read.
 * @param onError called for the first of consecutive failures; the loop continues
 * @returns a function that stops the loop
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
      await sleep(INTERVAL_MS, undefined, { signal: ending.signal }).catch(() => undefined);
    }
  })();
  return () => {
    ending.abort();
    return running;
  };
}

async function foldAll(pool: Pool, fold: typeof foldTags, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && (await fold(pool, ADDITIONS_PER_STATEMENT)) === ADDITIONS_PER_STATEMENT);
}
