import { spawn } from 'node:child_process';
import type { DevFile } from '../src/main/dev-file.ts';
import type { Pool } from '../src/store/postgres/pool.ts';
import { quantile } from './figures.ts';
import { email, headers, PROVIDER_LATENCY_MS, warmUp } from './load.ts';
import { postAtRate } from './paced.ts';
import { report } from './report.ts';
import { size } from './sizes.ts';
import { withStack } from './stack.ts';
import type { Row } from './table.ts';
import { untilQuiet, untilSent } from './waiting.ts';

/** Single emails a second while a part is away or slow. */
const RATE = 60;
const REFUSING_RATE = 500;
const SECONDS = size('BENCH_SECONDS', 90);
/** The second time for which workers are away, as a multiple of the first. */
const LONG = 20 / 3;
/** Emails are accepted beside a backlog for this time, and again until it is drained. */
const BESIDE_S = 10;
const BUSY_LOOPS = 8;

/** Measures what a backlog of single emails costs those that come after it. */
export async function backlog(): Promise<void> {
  const rows = await withStack(
    { env: { EMAIL_PROVIDERS: 'postmark' }, fleets: ['all'] },
    async (stack, pool, processes) => {
      await warmUp(stack, 8, 2);
      const workers = processes.flatMap(({ worker }) => worker ?? []);
      const temporal = processes.flatMap(({ temporal: pid }) => pid ?? []);
      const bench = { stack, pool };
      const steps: readonly (() => Promise<Row[]>)[] = [
        () => away(bench, 'worker', workers, SECONDS),
        () => away(bench, 'Temporal', temporal, (SECONDS * 2) / 3),
        () => refusing(bench, 3),
        () => refusing(bench, 20),
        () => busy(bench),
        () => away(bench, 'worker', workers, SECONDS * LONG),
      ];
      const measured: Row[] = [];
      for (const step of steps) {
        const before = refusedRequests;
        for (const row of await step()) measured.push({ ...row, refused: refusedRequests - before });
        process.stderr.write(`${JSON.stringify(measured.at(-1))}\n`);
      }
      return measured;
    },
  );
  report('backlog', 'single emails beside a backlog', rows, { latency_ms: PROVIDER_LATENCY_MS });
}

interface Bench {
  readonly stack: DevFile;
  readonly pool: Pool;
}

/** Processes are stopped (SIGSTOP) while emails are accepted, and go on. */
async function away({ stack, pool }: Bench, what: string, pids: readonly number[], seconds: number): Promise<Row[]> {
  await untilQuiet(pool);
  const signal = (name: 'SIGSTOP' | 'SIGCONT') => pids.forEach((pid) => process.kill(pid, name));
  signal('SIGSTOP');
  let accepted: number;
  try {
    ({ accepted } = await post(stack, seconds));
  } finally {
    signal('SIGCONT');
  }
  const cameBack = await clock(pool);
  do await post(stack, BESIDE_S);
  while (await isWaiting(pool, cameBack));
  const end = await clock(pool);
  await untilSent(pool);
  const drainedMs = await drainTime(pool, cameBack);
  const beside = figures(await timesToProvider(pool, cameBack, end));
  const drained = Math.round(accepted / (drainedMs / 1_000));
  return [
    { situation: `${what} away for ${Math.round(seconds)} s`, waiting: accepted, 'drained/s': drained, ...beside },
  ];
}

/** Other processes take most of the processor time, each in a session of its own, so that the kernel counts them apart. */
async function busy({ stack, pool }: Bench): Promise<Row[]> {
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
  const end = await clock(pool);
  await untilSent(pool);
  const times = figures(await timesToProvider(pool, from, end));
  return [{ situation: `${BUSY_LOOPS} busy loops for ${SECONDS} s`, ...NO_BACKLOG, ...times }];
}

/** The provider refuses a share of the emails once. @returns a row for the others, and one for those that were refused */
async function refusing({ stack, pool }: Bench, percent: number): Promise<Row[]> {
  await untilQuiet(pool);
  const from = await clock(pool);
  const isRefused = (n: number) => (n * percent) % 100 < percent;
  await post(stack, SECONDS / 2, REFUSING_RATE, (n) => (isRefused(n) ? REFUSED : TO));
  const end = await clock(pool);
  await untilSent(pool);
  const situation = `${percent} % refused once, ${REFUSING_RATE}/s for ${SECONDS / 2} s`;
  return [
    { situation, ...NO_BACKLOG, ...figures(await timesToProvider(pool, from, end)) },
    {
      situation: 'those that were refused',
      ...NO_BACKLOG,
      ...figures(await timesToProvider(pool, from, end, REFUSED)),
    },
  ];
}

const TO = 'waiting@example.net';
const REFUSED = 'fail-once@example.net';
/** Requests that were not accepted, which are not sent again. */
let refusedRequests = 0;
const NO_BACKLOG = { waiting: 0, 'drained/s': 0 };

function figures(times: readonly number[]) {
  const last = times.slice(-Math.ceil(times.length / 4));
  return {
    'new p50 ms': quantile(times, 0.5),
    'new p99 ms': quantile(times, 0.99),
    'new max ms': quantile(times, 1),
    'last quarter p99 ms': quantile(last, 0.99),
  };
}

/** @param to the recipient of the n-th of 100 emails */
function post(stack: DevFile, seconds: number, rate = RATE, to: (n: number) => string = () => TO) {
  return postAtRate({
    url: `${stack.base_url}/v1/emails`,
    headers: headers(stack),
    bodies: Array.from({ length: 100 }, (_, n) => JSON.stringify(email(stack, to(n)))),
    connections: 32,
    seconds,
    rate,
    countRefused: () => refusedRequests++,
  });
}

/** True while an email that was accepted before `since` is waiting. */
async function isWaiting(pool: Pool, since: Date): Promise<boolean> {
  const { rows } = await pool.query<{ open: boolean }>(
    `SELECT EXISTS (SELECT FROM emails WHERE status = 'queued' AND created_at < $1) AS open`,
    [since],
  );
  return rows[0]?.open === true;
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

/** Milliseconds to the provider of each email to `to` that was accepted between two times, in the order of their acceptance. */
async function timesToProvider(pool: Pool, from: Date, until: Date, to = TO): Promise<number[]> {
  const { rows } = await pool.query<{ ms: number }>(
    `SELECT (extract(epoch FROM event.created_at - email.created_at) * 1000)::float8 AS ms
     FROM emails AS email JOIN email_events AS event ON event.email_id = email.id AND event.type = 'email.sent'
     WHERE email.created_at >= $1 AND email.created_at < $2 AND email."to" ->> 0 = $3
     ORDER BY email.created_at`,
    [from, until, to],
  );
  return rows.map((row) => row.ms);
}
