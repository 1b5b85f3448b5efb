import type { DevFile } from '../src/main/dev-file.ts';
import type { Pool } from '../src/store/postgres/pool.ts';
import { PROVIDER_LATENCY_MS, postSingles, warmUp } from './load.ts';
import { report } from './report.ts';
import { size } from './sizes.ts';
import { type Processes, withStack } from './stack.ts';
import type { Row } from './table.ts';
import { perEmail, processorTime } from './usage.ts';
import { countPending, untilQuiet, untilSent } from './waiting.ts';

/** Single emails per second that are posted. */
const RATES = [1_000, 1_500, 2_000, 2_500];
const SECONDS = size('BENCH_SECONDS', 20);
/** The highest sustained rate is repeated for this many times as long. */
const CONFIRMATION_FACTOR = 3;
const CONNECTIONS = 64;
/** Seconds of the rate that may be pending at the end; more means a growing backlog. */
const MAX_BACKLOG_SECONDS = 0.5;
/** The share of the rate that must have been accepted. */
const MIN_REACHED_SHARE = 0.98;

/** Measures how many single emails per second can be accepted and sent continuously, with and without the provider's reports. */
export async function sustained(): Promise<void> {
  const rows: Row[] = [];
  for (const reports of [true, false]) {
    const options = { env: { EMAIL_PROVIDERS: 'postmark' }, reports };
    rows.push(
      ...(await withStack(options, async (stack, pool, processes) => {
        await warmUp(stack, 32, 3);
        return climb((rate, seconds) => measure(stack, pool, processes, { reports, rate, seconds }));
      })),
    );
  }
  report('sustained', 'single emails at a rate, accepted and sent', rows, {
    connections: CONNECTIONS,
    latency_ms: PROVIDER_LATENCY_MS,
  });
}

/** Increases the rate until one is not sustained, then repeats the last sustained one for longer. */
async function climb(measure: (rate: number, seconds: number) => Promise<Row & { held: string }>): Promise<Row[]> {
  const rows = [];
  let best: number | undefined;
  for (const rate of RATES) {
    const row = await measure(rate, SECONDS);
    rows.push(row);
    if (row.held === 'no') break;
    best = rate;
  }
  if (best !== undefined) rows.push(await measure(best, SECONDS * CONFIRMATION_FACTOR));
  return rows;
}

async function measure(
  stack: DevFile,
  pool: Pool,
  processes: readonly Processes[],
  { reports, rate, seconds }: { reports: boolean; rate: number; seconds: number },
) {
  await untilQuiet(pool);
  const { unreported: before } = await countPending(pool);
  const start = await processorTime(processes);
  const { accepted, perSecond, p50, p99 } = await postSingles(stack, { connections: CONNECTIONS, seconds, rate });
  const { pending, unreported } = await countPending(pool);
  await untilSent(pool);
  const used = perEmail(start, await processorTime(processes), accepted);
  return {
    'emails/s': rate,
    s: seconds,
    reports: reports ? 'yes' : 'no',
    held: pending <= rate * MAX_BACKLOG_SECONDS && perSecond >= rate * MIN_REACHED_SHARE ? 'yes' : 'no',
    'accepted/s': perSecond,
    'p50 ms': p50,
    'p99 ms': p99,
    waiting: pending,
    unreported: reports ? unreported - before : '',
    ...used,
  };
}
