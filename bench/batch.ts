import type { DevFile } from '../src/main/dev-file.ts';
import type { Pool } from '../src/store/postgres/pool.ts';
import { quantile, repeat } from './figures.ts';
import { batchBody, postBatch, PROVIDER_LATENCY_MS, warmUp } from './load.ts';
import { handOvers, others } from './meanwhile.ts';
import { report } from './report.ts';
import { size } from './sizes.ts';
import { type Processes, withStack } from './stack.ts';
import type { Row } from './table.ts';
import { watchMemory } from './usage.ts';
import { untilBatchSent, untilQuiet } from './waiting.ts';

const SIZE = size('BENCH_SIZE', 10_000);
const RUNS = size('BENCH_RUNS', 3);

/** Measures how soon a batch is accepted and sent, and its effect on other requests. */
export async function batch(): Promise<void> {
  const rows = [];
  for (const provider of ['postmark', 'smtp']) {
    const row = await withStack({ env: { EMAIL_PROVIDERS: provider } }, async (stack, pool, processes) => {
      await warmUp(stack, 4, 2);
      return repeat(RUNS, () => measure(stack, pool, processes));
    });
    rows.push({ provider, ...row });
  }
  report('batch', 'a batch, and single emails meanwhile', rows, {
    emails: SIZE,
    runs: RUNS,
    latency_ms: PROVIDER_LATENCY_MS,
  });
}

async function measure(stack: DevFile, pool: Pool, processes: readonly Processes[]): Promise<Row> {
  const body = batchBody(stack, SIZE);
  await untilQuiet(pool);
  const over = new AbortController();
  const watching = others(stack, over.signal);
  const memory = watchMemory(processes, over.signal);
  try {
    const began = performance.now();
    const id = await postBatch(stack, body);
    const accepted = performance.now();
    await untilBatchSent(pool, stack, id);
    const sent = performance.now();
    over.abort();
    const { latencies, ids } = await watching;
    const { api, worker } = await memory;
    return {
      '202 ms': accepted - began,
      'last sent s': (sent - accepted) / 1_000,
      'others p99 ms': quantile(latencies, 0.99),
      'single sent p95 ms': quantile(
        (await handOvers(pool, ids)).map(({ ms }) => ms),
        0.95,
      ),
      'api MB': api,
      'worker MB': worker,
    };
  } finally {
    over.abort();
  }
}
