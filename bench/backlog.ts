import { spawn } from 'node:child_process';
import type { DevFile } from '../src/main/dev-file.ts';
import type { Pool } from '../src/store/postgres/pool.ts';
import { quantile } from './figures.ts';
import { email, PROVIDER_LATENCY_MS, warmUp } from './load.ts';
import { postAtRate } from './paced.ts';
import { report } from './report.ts';
import { size } from './sizes.ts';
import { type Processes, withStack } from './stack.ts';
import type { Row } from './table.ts';
import { untilQuiet, untilSent } from './waiting.ts';

/** Single emails a second while workers are away or slow. */
const RATE = 60;
const SECONDS = size('BENCH_SECONDS', 90);
/** Emails accepted within this time after workers have come back are the new ones beside the backlog. */
const BESIDE_MS = 10_000;
const BUSY_LOOPS = 8;

/** Measures what a backlog of single emails costs those that come after it: workers were away, or have little processor time. */
export async function backlog(): Promise<void> {
  const rows = await withStack(
    { env: { EMAIL_PROVIDERS: 'postmark' }, fleets: ['all'] },
    async (stack, pool, processes) => {
      await warmUp(stack, 8, 2);
      return [await away(stack, pool, processes), await busy(stack, pool)];
    },
  );
  report('backlog', `single emails at ${RATE} a second beside a backlog`, rows, { latency_ms: PROVIDER_LATENCY_MS });
}

/** The worker is stopped (SIGSTOP) while emails are accepted, and goes on. */
async function away(stack: DevFile, pool: Pool, processes: readonly Processes[]): Promise<Row> {
  await untilQuiet(pool);
  const workers = processes.flatMap(({ worker }) => (worker === undefined ? [] : [worker]));
  const signal = (name: 'SIGSTOP' | 'SIGCONT') => workers.forEach((pid) => process.kill(pid, name));
  signal('SIGSTOP');
  let accepted: number;
  try {
    ({ accepted } = await post(stack, SECONDS));
  } finally {
    signal('SIGCONT');
  }
  const cameBack = await clock(pool);
  const began = performance.now();
  await post(stack, BESIDE_MS / 1_000);
  await untilSent(pool);
  const drainedMs = await drainTime(pool, cameBack);
  const beside = await timesToProvider(pool, cameBack, performance.now() - began);
  return {
    situation: `worker away for ${SECONDS} s`,
    waiting: accepted,
    'drained/s': Math.round(accepted / (drainedMs / 1_000)),
    'new p50 ms': quantile(beside, 0.5),
    'new p99 ms': quantile(beside, 0.99),
    'new max ms': quantile(beside, 1),
  };
}

/** Other processes take most of the processor time, each in a session of its own, so that the kernel counts them apart. */
async function busy(stack: DevFile, pool: Pool): Promise<Row> {
  await untilQuiet(pool);
  const loops = Array.from({ length: BUSY_LOOPS }, () =>
    spawn(process.execPath, ['-e', 'for (;;);'], { detached: true, stdio: 'ignore' }),
  );
  const from = await clock(pool);
  try {
    await post(stack, SECONDS);
  } finally {
    for (const loop of loops) loop.kill('SIGKILL');
  }
  await untilSent(pool);
  const times = await timesToProvider(pool, from, SECONDS * 1_000);
  const last = times.slice(-Math.ceil(times.length / 4));
  return {
    situation: `${BUSY_LOOPS} busy loops for ${SECONDS} s`,
    waiting: 0,
    'drained/s': 0,
    'new p50 ms': quantile(times, 0.5),
    'new p99 ms': quantile(times, 0.99),
    'new max ms': quantile(times, 1),
    'last quarter p99 ms': quantile(last, 0.99),
  };
}

function post(stack: DevFile, seconds: number) {
  return postAtRate({
    url: `${stack.base_url}/v1/emails`,
    headers: { authorization: `Bearer ${stack.api_key}`, 'content-type': 'application/json' },
    bodies: [JSON.stringify(email(stack, 'waiting@example.net'))],
    connections: 16,
    seconds,
    rate: RATE,
  });
}

async function clock(pool: Pool): Promise<Date> {
  const { rows } = await pool.query<{ now: Date }>('SELECT clock_timestamp() AS now');
  return (rows[0] as { now: Date }).now;
}

/** Milliseconds from `since` until the last email that was accepted before it was sent. */
async function drainTime(pool: Pool, since: Date): Promise<number> {
  const { rows } = await pool.query<{ ms: number }>(
    `SELECT (extract(epoch FROM max(event.created_at) - $1) * 1000)::float8 AS ms
     FROM emails AS email JOIN email_events AS event ON event.email_id = email.id AND event.type = 'email.sent'
     WHERE email.created_at < $1`,
    [since],
  );
  return rows[0]?.ms ?? 0;
}

/** Milliseconds to the provider of each email that was accepted within `ms` after `since`, in the order of their acceptance. */
async function timesToProvider(pool: Pool, since: Date, ms: number): Promise<number[]> {
  const { rows } = await pool.query<{ ms: number }>(
    `SELECT (extract(epoch FROM event.created_at - email.created_at) * 1000)::float8 AS ms
     FROM emails AS email JOIN email_events AS event ON event.email_id = email.id AND event.type = 'email.sent'
     WHERE email.created_at >= $1 AND email.created_at < $1::timestamptz + $2::float8 * interval '1 millisecond'
     ORDER BY email.created_at`,
    [since, ms],
  );
  return rows.map((row) => row.ms);
}
