import type { DevFile } from '../src/main/dev-file.ts';
import type { Pool } from '../src/store/postgres/pool.ts';
import { medians } from './figures.ts';
import { batchBody, postBatch, postSingles } from './load.ts';
import { size } from './sizes.ts';
import type { Row } from './table.ts';

const SIZE = size('BENCH_SIZE', 10_000);
const RUNS = size('BENCH_RUNS', 5);
const SECONDS = size('BENCH_SECONDS', 8);
/** Emails per statement. */
const CHUNK = 50_000;

/** What it takes to accept a batch, and single emails, where so many emails are stored. */
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

/** Gives what `storeManyEmails` stored the rows that an email has in tables that are not listed. */
export async function storeTheirParts(pool: Pool, rows: number): Promise<void> {
  for (let from = 0; from < rows; from += CHUNK) {
    await pool.query(STORE, [from, Math.min(from + CHUNK, rows) - 1]);
  }
}

const STORE = `
  WITH numbered AS (
    SELECT 'em_' || lpad(n::text, 26, '0') AS id, n FROM generate_series($1::int, $2::int) AS n
  ), bodies AS (
    INSERT INTO email_bodies (email_id, html, text) SELECT id, '<p>Thank you.</p>', 'Thank you.' FROM numbered
  )
  INSERT INTO email_events (email_id, id, type, created_at, dedupe_key)
  SELECT numbered.id, 'ev_' || lpad((3 * n + step)::text, 26, '0'), type, emails.created_at, CASE WHEN step > 0 THEN type END
  FROM numbered JOIN emails USING (id)
  CROSS JOIN (VALUES (0, 'email.queued'), (1, 'email.sent'), (2, 'email.delivered')) AS event(step, type)`;
