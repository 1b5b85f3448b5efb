import { startLoop } from '../lib/background-loop.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { aggregateTags } from '../store/emails/tags.ts';
import { aggregateStatistics } from '../store/statistics/totals.ts';

/** A short interval keeps the number of rows small that readers of the counts must add up. */
const INTERVAL_MS = 1_000;
/** Limits the rows per statement, so that no statement is slow. */
const ADDITIONS_PER_STATEMENT = 5_000;

/**
 * Adds new rows to the counts of tags and to the statistics within a second or two. While it does not run, counts remain correct
 * but are slower to read.
 * @param onError called for the first of consecutive failures; the loop continues
 * @returns a function that stops the loop
 */
export function startAggregatingCounts(pool: Pool, onError: (error: unknown) => void): () => Promise<void> {
  const step = async (signal: AbortSignal): Promise<void> => {
    for (const aggregate of [aggregateTags, aggregateStatistics]) await aggregateAll(pool, aggregate, signal);
  };
  return startLoop(INTERVAL_MS, step, onError);
}

async function aggregateAll(pool: Pool, aggregate: typeof aggregateTags, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && (await aggregate(pool, ADDITIONS_PER_STATEMENT)) === ADDITIONS_PER_STATEMENT);
}
