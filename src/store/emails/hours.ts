import type { BounceReason, EmailStatus } from '../../domain/email/email.ts';
import { columns } from '../postgres/columns.ts';
import type { Db } from '../postgres/pool.ts';
import type { RecordedChange } from './changes.ts';

/**
 * Counts emails that changes move, in their batches and in the hour of their acceptance. A time is taken when an email becomes
 * sent, and when it becomes delivered: a report that overtakes another leaves the other's time unknown.
 */
export async function countMoves(client: Db, changes: readonly RecordedChange[]): Promise<void> {
  const moves = changes.filter(({ from_status, to_status }) => from_status !== to_status);
  if (moves.length === 0) return;
  const emails = moves.map(({ email }) => email);
  await client.query({
    name: 'count_moves',
    text: `WITH move AS (
             SELECT * FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[],
                                  $5::text[], $6::text[], $7::timestamptz[], $8::text[])
               AS move(org_id, batch_id, accepted_at, due_at, from_status, to_status, at, bounce_reason)
           ), of_batches AS (
             INSERT INTO batch_moves (batch_id, from_status, to_status, members, at)
             SELECT batch_id, from_status, to_status, count(*), coalesce(max(at), clock_timestamp())
             FROM move WHERE batch_id IS NOT NULL GROUP BY batch_id, from_status, to_status
           )
           INSERT INTO email_moves (org_id, hour, from_status, to_status, bounce_reason, time_step, emails)
           SELECT org_id, date_trunc('hour', accepted_at, 'UTC'), from_status, to_status, bounce_reason,
                  CASE WHEN to_status IN ('sent', 'delivered') THEN time_step(due_at, at) END, count(*)
           FROM move GROUP BY 1, 2, 3, 4, 5, 6`,
    values: [
      ...columns(emails, 'org_id', 'batch_id', 'accepted_at', 'due_at'),
      ...columns(moves, 'from_status', 'to_status', 'at'),
      moves.map(({ input }) => input.bounce_reason),
    ],
  });
}

/** The additions of a row of email_moves to rows of email_hours. */
const SIDES = `
  CROSS JOIN LATERAL (VALUES
    ('status', move.to_status, move.emails), ('status', move.from_status, -move.emails),
    ('bounce', move.bounce_reason, move.emails), (move.to_status, move.time_step::text, move.emails)
  ) AS side(measure, name, emails)`;

/** The advisory lock of this aggregation: one process at a time. */
const LOCK = 4_418_093_673;

/**
 * Moves the oldest additions into email_hours, in one statement, so that readers of both count each email once. Does nothing
 * while another process does it.
 * @returns how many it took, at most `limit`
 */
export async function aggregateEmailMoves(db: Db, limit: number): Promise<number> {
  const { rows } = await db.query<{ taken: number }>({
    name: 'aggregate_email_moves',
    text: `WITH taken AS (
             DELETE FROM email_moves
             WHERE id = ANY (ARRAY(SELECT id FROM email_moves WHERE (SELECT pg_try_advisory_xact_lock($2)) ORDER BY id LIMIT $1))
             RETURNING *
           ), aggregated AS (
             INSERT INTO email_hours AS total (org_id, hour, measure, name, emails)
             SELECT move.org_id, move.hour, side.measure, side.name, sum(side.emails) FROM taken AS move ${SIDES}
             WHERE side.name IS NOT NULL GROUP BY 1, 2, 3, 4
             ON CONFLICT (org_id, hour, measure, name) DO UPDATE SET emails = total.emails + excluded.emails
           )
           SELECT count(*)::int AS taken FROM taken`,
    values: [limit, LOCK],
  });
  return rows[0]?.taken ?? 0;
}

/** Emails that were accepted since a certain hour. */
export interface EmailHours {
  /** Hours that were added up, by their begin, with emails by the status that they have now. */
  readonly statuses: ReadonlyMap<string, Partial<Record<EmailStatus, number>>>;
  readonly bounces: Partial<Record<BounceReason, number>>;
  /** Emails by the time from when they were due: it is at most 2^(step/2) ms. */
  readonly sent: ReadonlyMap<number, number>;
  readonly delivered: ReadonlyMap<number, number>;
}

/**
 * What became of the emails that an organization has sent since a certain time.
 * @param by what hours are added up to, UTC
 */
export async function readEmailHours(db: Db, orgId: string, since: string, by: 'hour' | 'day'): Promise<EmailHours> {
  const { rows } = await db.query<{ at: string; measure: string; name: string; emails: number }>({
    name: 'read_email_hours',
    text: `SELECT CASE WHEN measure = 'status' THEN date_trunc($3, hour, 'UTC') ELSE $2::timestamptz END AS at,
                  measure, name, sum(emails)::float8 AS emails
           FROM (
             SELECT hour, measure, name, emails FROM email_hours WHERE org_id = $1 AND hour >= $2
             UNION ALL
             SELECT move.hour, side.measure, side.name, side.emails FROM email_moves AS move ${SIDES}
             WHERE move.org_id = $1 AND move.hour >= $2 AND side.name IS NOT NULL
           ) AS part
           GROUP BY 1, 2, 3 HAVING sum(emails) > 0 ORDER BY 1, 2, 3`,
    values: [orgId, since, by],
  });
  const statuses = new Map<string, Partial<Record<EmailStatus, number>>>();
  const bounces: Partial<Record<BounceReason, number>> = {};
  const times = { sent: new Map<number, number>(), delivered: new Map<number, number>() };
  for (const { at, measure, name, emails } of rows) {
    if (measure === 'status') statuses.set(at, { ...statuses.get(at), [name as EmailStatus]: emails });
    else if (measure === 'bounce') bounces[name as BounceReason] = emails;
    else times[measure as keyof typeof times].set(Number(name), emails);
  }
  return { statuses, bounces, ...times };
}
