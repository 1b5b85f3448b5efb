import type { DevFile } from '../src/main/dev-file.ts';
import { repeat } from './figures.ts';
import { batchBody, postBatch, postSingles } from './load.ts';
import { size } from './sizes.ts';
import type { Row } from './table.ts';

const SIZE = size('BENCH_SIZE', 10_000);
const RUNS = size('BENCH_RUNS', 5);
const SECONDS = size('BENCH_SECONDS', 8);

/** Measures how fast a batch and single emails are accepted, with `stored` emails in the database. */
export async function acceptBatches(stack: DevFile, stored: number): Promise<Row> {
  const body = batchBody(stack, SIZE);
  // The first requests compile code and fill caches.
  await postSingles(stack, { connections: 32, seconds: 3 });
  await postBatch(stack, body);
  const batches = await repeat(RUNS, async () => {
    const began = performance.now();
    await postBatch(stack, body);
    return { '202 ms': performance.now() - began };
  });
  const { perSecond, p99 } = await postSingles(stack, { connections: 32, seconds: SECONDS });
  return { stored, emails: SIZE, runs: RUNS, ...batches, 'singles/s': perSecond, 'p99 ms': p99 };
}
