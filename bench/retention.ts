import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import type { DevFile } from '../src/main/dev-file.ts';
import type { Pool } from '../src/store/postgres/pool.ts';
import { expireEmails } from '../src/upkeep/partitions.ts';
import { quantiles } from './figures.ts';
import { call, email, postSingles } from './load.ts';
import { report } from './report.ts';
import { size } from './sizes.ts';
import { withStack } from './stack.ts';
import { RETENTION_DAYS, storeYear } from './stored.ts';
import type { Row } from './table.ts';
import { formatNumber } from '../src/lib/text.ts';

const ROWS = size('BENCH_ROWS', 10_000_000);
/** Duration of the requests without other load. */
const SECONDS = size('BENCH_SECONDS', 20);
const POST_INTERVAL_MS = 10;
const LIST_INTERVAL_MS = 50;

/**
 * Measures requests while one month of emails expires out of a year and a month. Each second, 100 requests send a single email
 * and 20 read the first page of the list. Nothing is sent: the stored emails have no workflow.
 */
export async function retention(): Promise<void> {
  const rows = await withStack({ without: ['temporal', 'worker'] }, async (stack, pool) => {
    await storeYear(stack, pool, ROWS);
    await postSingles(stack, { connections: 16, seconds: 3 });
    const alone = await measure(stack, 'nothing', () => sleep(SECONDS * 1_000));
    const before = await countOld(pool);
    const beside = await measure(stack, 'expiring', () => expire(pool));
    const expired = before - (await countOld(pool));
    return [
      { ...alone, 'emails expired': 0 },
      { ...beside, 'emails expired': expired },
    ];
  });
  const title = `requests while a partition expires out of ${formatNumber(ROWS)} emails, ms`;
  report('retention', title, rows, { emails: ROWS });
}

/** Runs all steps of the hourly task that expires emails. */
async function expire(pool: Pool): Promise<void> {
  const deps = { pool, emailRetentionDays: RETENTION_DAYS, log: pino({ level: 'silent' }) };
  while ((await expireEmails(deps, Date.now())).next !== null);
}

/** Counts emails that are older than the retention. */
async function countOld(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ emails: number }>(
    `SELECT count(*)::int AS emails FROM emails WHERE id < email_id_at(now() - interval '${RETENTION_DAYS} days')`,
  );
  return rows[0]?.emails ?? 0;
}

async function measure(stack: DevFile, meanwhile: string, work: () => Promise<unknown>): Promise<Row> {
  const over = new AbortController();
  const began = performance.now();
  const loads = Promise.all([
    latencies(POST_INTERVAL_MS, over.signal, () =>
      call(stack, 'POST', '/v1/emails', email(stack, 'single@example.net')),
    ),
    latencies(LIST_INTERVAL_MS, over.signal, () => call(stack, 'GET', '/v1/emails?limit=50')),
  ]);
  await work().finally(() => over.abort());
  const seconds = (performance.now() - began) / 1_000;
  const [accepting, listing] = await loads;
  return { meanwhile, s: seconds, ...quantiles('202', accepting), ...quantiles('list', listing) };
}

/** Starts a request at an interval in milliseconds, without waiting for earlier ones. @returns milliseconds per request */
async function latencies(every: number, signal: AbortSignal, request: () => Promise<unknown>): Promise<number[]> {
  const began = performance.now();
  const all = [];
  for (let n = 0; !signal.aborted; n++) {
    await sleep(Math.max(0, began + n * every - performance.now()), undefined, { signal }).catch(() => undefined);
    const from = performance.now();
    all.push(request().then(() => performance.now() - from));
  }
  return Promise.all(all);
}
