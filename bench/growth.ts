import type { DevFile } from '../src/main/dev-file.ts';
import { medians } from './figures.ts';
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
  const runs = [];
  for (let run = 0; run < RUNS; run++) {
    const began = performance.now();
    await postBatch(stack, body);
    runs.push({ stored, emails: SIZE, runs: RUNS, '202 ms': performance.now() - began });
  }
  const { perSecond, p99 } = await postSingles(stack, { connections: 32, seconds: SECONDS });
  return { ...medians(runs), 'singles/s': perSecond, 'p99 ms': p99 };
}
