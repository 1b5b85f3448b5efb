import { setTimeout as sleep } from 'node:timers/promises';
import type { DevFile } from '../src/main/dev-file.ts';
import type { Pool } from '../src/store/postgres/pool.ts';
import { repeat } from './figures.ts';
import { batchBody, postBatch, PROVIDER_LATENCY_MS, warmUp } from './load.ts';
import { report } from './report.ts';
import { size } from './sizes.ts';
import { type Processes, withStack } from './stack.ts';
import type { Row } from './table.ts';
import { perEmail, processorTime } from './usage.ts';
import { untilQuiet, untilSent, untilStarted } from './waiting.ts';

const SIZE = size('BENCH_SIZE', 10_000);
const RUNS = size('BENCH_RUNS', 3);
/** Numbers of batches that are due at the same time, with the number of runs. */
const BATCHES = [
  { batches: 1, runs: RUNS },
  { batches: 10, runs: 1 },
];
/** Emails are due after a constant and an amount per email, so that all have their workflow before. */
const MIN_LEAD_MS = 20_000;
const LEAD_MS_PER_EMAIL = 0.7;

/** Measures the delay of emails that are scheduled for one instant, and whether any is sent before it. */
export async function due(): Promise<void> {
  const rows = await withStack({ env: { EMAIL_PROVIDERS: 'postmark' } }, async (stack, pool, processes) => {
    await warmUp(stack, 4, 2);
    const measured = [];
    for (const { batches, runs } of BATCHES) {
      measured.push({ ...(await repeat(runs, () => measure(stack, pool, processes, batches))), runs });
    }
    return measured;
  });
  report('due', 'emails scheduled for one instant: how late they were sent', rows, { latency_ms: PROVIDER_LATENCY_MS });
}

async function measure(stack: DevFile, pool: Pool, processes: readonly Processes[], batches: number): Promise<Row> {
  await untilQuiet(pool);
  const emails = batches * SIZE;
  const dueAt = Date.now() + MIN_LEAD_MS + emails * LEAD_MS_PER_EMAIL;
  const body = batchBody(stack, SIZE, new Date(dueAt).toISOString());
  const ids = [];
  for (let i = 0; i < batches; i++) ids.push(await postBatch(stack, body));
  await untilStarted(pool);
  const spare = dueAt - Date.now();
  if (spare < 0) throw new Error('the emails were due before all of them had a workflow');
  await sleep(spare);
  const before = await processorTime(processes);
  await untilSent(pool);
  const used = perEmail(before, await processorTime(processes), emails);
  const { rows } = await pool.query<Row>(
    `SELECT count(*)::int AS emails,
            count(*) FILTER (WHERE EXISTS (
              SELECT FROM attempts WHERE message_id = id AND started_at < scheduled_at))::int AS "before it",
            percentile_disc(0.5) WITHIN GROUP (ORDER BY late) AS "p50 s",
            percentile_disc(0.99) WITHIN GROUP (ORDER BY late) AS "p99 s",
            max(late) AS "max s"
     FROM (
       SELECT email.id, scheduled_at, extract(epoch FROM event.created_at - scheduled_at)::float8 AS late
       FROM emails AS email JOIN email_events AS event ON event.email_id = email.id AND event.type = 'email.sent'
       WHERE batch_id = ANY ($1)
     ) AS sent`,
    [ids],
  );
  const [row = {}] = rows;
  if (row['emails'] !== emails) throw new Error(`of ${emails} emails ${String(row['emails'])} were sent`);
  return { ...row, 'ready s before': spare / 1_000, ...used };
}
