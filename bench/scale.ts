import type { DevFile } from '../src/main/dev-file.ts';
import type { Pool } from '../src/store/postgres/pool.ts';
import { setBehaviour } from '../dev/simulator/set-behaviour.ts';
import { repeat } from './figures.ts';
import { batchBody, postBatch, PROVIDER_LATENCY_MS, postSingles } from './load.ts';
import { report } from './report.ts';
import { size } from './sizes.ts';
import { type Processes, withStack } from './stack.ts';
import type { Row } from './table.ts';
import { perEmail, processorTime } from './usage.ts';
import { untilQuiet, untilSent } from './waiting.ts';

const SIZE = size('BENCH_SIZE', 10_000);
const RUNS = size('BENCH_RUNS', 3);
const SECONDS = size('BENCH_SECONDS', 8);
/** The total number of connections to the APIs. */
const CONNECTIONS = 32;
const BATCHES = 2;

/**
 * Measures one API with its relay and one worker of each fleet, and two of each, on one Postgres and one Temporal. On one machine
 * they share its processors, so the processor time of an email shows whether two of each do the work of twice as many emails.
 */
export async function scale(): Promise<void> {
  const rows: Row[] = [];
  for (const copies of [1, 2]) {
    rows.push(
      ...(await withStack({ env: { EMAIL_PROVIDERS: 'postmark' }, copies }, async (stack, pool, processes, urls) => {
        await setBehaviour(stack.inbox_url ?? '', { latency_ms: PROVIDER_LATENCY_MS });
        const kinds = {
          [`${BATCHES} batches of ${SIZE}`]: () => batches(stack, urls),
          [`singles for ${SECONDS} s`]: () => singles(stack, urls, SECONDS),
        };
        await singles(stack, urls, 2);
        const measured = [];
        for (const [emails, post] of Object.entries(kinds)) {
          measured.push({ copies, emails, ...(await repeat(RUNS, () => measure(pool, processes, post))) });
        }
        return measured;
      })),
    );
  }
  report('scale', 'emails accepted, sent and reported, by one and two of each', rows, {
    runs: RUNS,
    latency_ms: PROVIDER_LATENCY_MS,
  });
}

/** @param post resolves to the number of accepted emails */
async function measure(pool: Pool, processes: readonly Processes[], post: () => Promise<number>): Promise<Row> {
  await untilQuiet(pool);
  const before = await processorTime(processes);
  const began = performance.now();
  const accepted = await post();
  const accepting = (performance.now() - began) / 1_000;
  await untilSent(pool);
  const sending = (performance.now() - began) / 1_000;
  await untilQuiet(pool);
  const used = perEmail(before, await processorTime(processes), accepted);
  return { 'accepted/s': accepted / accepting, 'sent/s': accepted / sending, ...used };
}

/** Posts the batches concurrently, to the APIs in turn. */
async function batches(stack: DevFile, urls: readonly string[]): Promise<number> {
  const body = batchBody(stack, SIZE);
  const to = (i: number) => ({ ...stack, base_url: urls[i % urls.length] ?? stack.base_url });
  await Promise.all(Array.from({ length: BATCHES }, (_, i) => postBatch(to(i), body)));
  return BATCHES * SIZE;
}

async function singles(stack: DevFile, urls: readonly string[], seconds: number): Promise<number> {
  const connections = CONNECTIONS / urls.length;
  const loads = await Promise.all(
    urls.map((base_url) => postSingles({ ...stack, base_url }, { connections, seconds })),
  );
  return loads.reduce((sum, { accepted }) => sum + accepted, 0);
}
