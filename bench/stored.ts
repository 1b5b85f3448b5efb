import { storeManyEmails } from '../dev/fixtures/many-emails.ts';
import type { DevFile } from '../src/main/dev-file.ts';
import { makePool, type Pool } from '../src/store/postgres/pool.ts';
import { addPartition, dropPartition, listPartitions, PARTITIONED_TABLES } from '../src/store/upkeep/partitions.ts';
import { addPartitions, partitionFrom } from '../src/upkeep/partitions.ts';

const DAY_MS = 86_400_000;
/** Days of the emails that `storeYear` stores: a year, and its oldest partition, which has just expired. */
export const RETENTION_DAYS = 365;
const PARTITION_DAYS = 30;
const KEPT_DAYS = RETENTION_DAYS + PARTITION_DAYS + 1;

/**
 * Fills the database of a new stack evenly with emails of the last year and a month, in partitions of 30 days, including all
 * rows that an email has.
 * @returns the times of the emails, as `storeManyEmails` takes them
 */
export async function storeYear(stack: DevFile, pool: Pool, rows: number): Promise<{ first: number; apart: number }> {
  const now = Date.now();
  const first = now - (now % DAY_MS) - KEPT_DAYS * DAY_MS;
  const oldest = partitionFrom(first, PARTITION_DAYS);
  for (const table of PARTITIONED_TABLES) {
    for (const { suffix } of await listPartitions(pool, table)) await dropPartition(pool, table, suffix);
    await addPartition(pool, table, oldest);
  }
  await addPartitions(pool, 0, now);
  const times = { first, apart: Math.floor((now - first) / rows) };
  await storeManyEmails(pool, rows, stack.organization_id, times);
  // These statements take minutes, which exceeds the service's timeouts.
  const patient = makePool(
    `${stack.database_url}?statement_timeout=3600000&query_timeout=3600000`,
    'bench',
    1,
    () => undefined,
  );
  for (const statement of STATEMENTS) await patient.query(statement);
  for (const table of [...PARTITIONED_TABLES, 'attempts']) await patient.query(`VACUUM ANALYZE ${table}`);
  await patient.end();
  return times;
}

/** They add the rows that `storeManyEmails` does not: bodies, timelines and attempts. */
const STATEMENTS = [
  // Emails of that age are not pending.
  `UPDATE emails SET status = 'delivered'
   WHERE status IN ('queued', 'scheduled') AND created_at < now() - interval '${RETENTION_DAYS} days'`,
  `INSERT INTO email_bodies (email_id, html, text) SELECT id, '<p>Thank you.</p>', 'Thank you.' FROM emails`,
  `INSERT INTO email_events (email_id, id, type, created_at, dedupe_key)
   SELECT emails.id, 'ev_' || substr(emails.id, 4, 10) || lpad(step::text, 16, '0'), type, created_at, CASE WHEN step > 0 THEN type END
   FROM emails CROSS JOIN (VALUES (0, 'email.queued'), (1, 'email.sent'), (2, 'email.delivered')) AS event(step, type)`,
  `INSERT INTO attempts (message_id, n, call, provider, started_at, ended_at, outcome, provider_message_id)
   SELECT id, 1, id || '.1', 'postmark', created_at, created_at, 'sent', gen_random_uuid() FROM emails`,
];
