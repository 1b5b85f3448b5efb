import { setTimeout as sleep } from 'node:timers/promises';
import type { DevFile } from '../src/main/dev-file.ts';
import type { Pool } from '../src/store/postgres/pool.ts';
import { median, quantile } from './figures.ts';
import { batchBody, postBatch, PROVIDER_LATENCY_MS, warmUp } from './load.ts';
import { type HandOver, handOvers, others } from './meanwhile.ts';
import { report } from './report.ts';
import { size } from './sizes.ts';
import { COMPOSE_FLEETS, withStack } from './stack.ts';
import type { Row } from './table.ts';
import { untilBatchSent, untilQuiet } from './waiting.ts';

const SIZE = size('BENCH_SIZE', 10_000);
/** More runs, since each has only a few dozen single emails. */
const RUNS = size('BENCH_RUNS', 5);
/** Single emails are sent for so long without other load. */
const ALONE_MS = 5_000;

/** The fleets of the worker processes: one process with all, or one for each. */
const FLEETS = [['all'], COMPOSE_FLEETS];

/** Measures how soon a one-time password reaches the provider, on an idle service and while a batch is sent. */
export async function otp(): Promise<void> {
  const rows = [];
  for (const fleets of FLEETS) rows.push(...(await measureFleets(fleets)));
  report('otp', 'from 202 of a single email to the provider’s yes', rows, {
    emails: SIZE,
    runs: RUNS,
    latency_ms: PROVIDER_LATENCY_MS,
  });
}

function measureFleets(fleets: readonly string[]): Promise<Row[]> {
  return withStack({ env: { EMAIL_PROVIDERS: 'postmark' }, fleets }, async (stack, pool) => {
    await warmUp(stack, 4, 2);
    const body = batchBody(stack, SIZE);
    await untilQuiet(pool);
    const alone = await measure(stack, pool, () => sleep(ALONE_MS));
    const beside: HandOver[] = [];
    for (let run = 0; run < RUNS; run++) {
      await untilQuiet(pool);
      const id = await postBatch(stack, body);
      beside.push(...(await measure(stack, pool, () => untilBatchSent(pool, stack, id))));
    }
    const workers = fleets.length;
    return [
      { workers, ...row('nothing', alone) },
      { workers, ...row(`${SIZE} emails`, beside) },
    ];
  });
}

/** Sends single emails until `meantime` resolves. */
async function measure(stack: DevFile, pool: Pool, meantime: () => Promise<unknown>): Promise<HandOver[]> {
  const over = new AbortController();
  const watching = others(stack, over.signal);
  try {
    await meantime();
  } finally {
    over.abort();
  }
  return handOvers(pool, (await watching).ids);
}

function row(meanwhile: string, all: readonly HandOver[]) {
  const times = all.map(({ ms }) => ms);
  return {
    meanwhile,
    'single emails': times.length,
    'p50 ms': quantile(times, 0.5),
    'p95 ms': quantile(times, 0.95),
    'max ms': quantile(times, 1),
    'before the call p50': median(all.map(({ before_call }) => before_call)),
    'call p50': median(all.map(({ call }) => call)),
  };
}
