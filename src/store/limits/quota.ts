import { type Db, executeOne, queryRow } from '../postgres/pool.ts';

/** The calendar month (UTC) by the database's clock, as monthly_usage names it. */
const MONTH = `date_trunc('month', now() AT TIME ZONE 'UTC')::date`;
const MONTH_BEGIN = `(date_trunc('month', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC')`;
/** An interval of months that is added to an instant would follow the session's time zone. */
const MONTH_END = `((date_trunc('month', now() AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC')`;

/** How much of the quota a stored email took. An address that stands in it twice counts twice here. */
const ALLOWANCE = `CASE WHEN marketing
  THEN jsonb_array_length("to") + coalesce(jsonb_array_length(cc), 0) + coalesce(jsonb_array_length(bcc), 0) ELSE 1 END`;

/** How many emails an organization may have accepted this month, and had. A marketing email counts once for each recipient. */
export interface Usage {
  /** Its quota; null is any number. */
  monthly: number | null;
  /** Emails accepted in this calendar month (UTC), canceled ones included. */
  used: number;
  /** When the next month begins. */
  resets_at: string;
  /** Whole seconds until then, one at least. */
  resets_in: number;
}

/**
 * Emails that the quota of organization `org` leaves, fewer than none when it was lowered; NULL without a quota. There may be
 * fewer by the time they are counted.
 */
export const LEFT_OF_QUOTA = (org: string): string => `(
  SELECT (monthly_quota - coalesce(
           (SELECT emails FROM monthly_usage WHERE org_id = ${org} AND month = ${MONTH}), 0))::float8
  FROM organizations WHERE id = ${org})`;

/**
 * Counts `wanted.emails` of organization `$1`, if its quota leaves as many; counts nothing without a quota. Other emails of the
 * organization wait from here to the end of the transaction: no two take the same rest.
 */
export const COUNT_WANTED = `
  quota AS MATERIALIZED (
    SELECT monthly_quota AS monthly FROM organizations WHERE id = $1 AND monthly_quota IS NOT NULL
  ), counted_wanted AS (
    INSERT INTO monthly_usage AS usage (org_id, month, emails)
    SELECT $1, ${MONTH}, wanted.emails FROM quota, wanted WHERE wanted.emails <= quota.monthly
    ON CONFLICT (org_id, month) DO UPDATE SET emails = usage.emails + excluded.emails
      WHERE usage.emails + excluded.emails <= (SELECT monthly FROM quota)
    RETURNING emails
  )`;
/** Whether they were counted, or need not be. */
export const WITHIN_QUOTA = `(NOT EXISTS (SELECT FROM quota, wanted) OR EXISTS (SELECT FROM counted_wanted))`;

/**
 * Counts emails against their organization's quota, by what each takes of it (`allowanceOf`).
 * @returns whether the quota, if there is one, leaves as many; if not, nothing is counted
 */
export async function countAgainstQuota(db: Db, orgId: string, emails: number): Promise<boolean> {
  const counted = await queryRow<{ within: boolean }>(db, {
    name: 'count_against_quota',
    text: `WITH wanted AS (SELECT $2::bigint AS emails), ${COUNT_WANTED} SELECT ${WITHIN_QUOTA} AS within`,
    values: [orgId, emails],
  });
  return counted?.within === true;
}

/**
 * How much of its quota an organization has used in this month. Without a quota its emails of the month are counted one by
 * one from an index: a second for some millions.
 */
export function usage(db: Db, orgId: string): Promise<Usage | undefined> {
  return queryRow(
    db,
    `SELECT monthly_quota::float8 AS monthly,
            CASE WHEN monthly_quota IS NULL
              THEN (SELECT count(*) FROM emails WHERE org_id = $1 AND created_at >= ${MONTH_BEGIN})
              ELSE coalesce((SELECT emails FROM monthly_usage WHERE org_id = $1 AND month = ${MONTH}), 0)
            END::float8 AS used,
            ${MONTH_END} AS resets_at,
            greatest(1, ceil(extract(epoch FROM ${MONTH_END} - now())))::int AS resets_in
     FROM organizations WHERE id = $1`,
    [orgId],
  );
}

/**
 * Gives an organization a quota, or takes it away. An organization that had none is counted from the emails of this month;
 * what is being accepted in that very moment may be left out.
 * @param monthly emails of a calendar month; null is any number
 * @returns false when there is no such organization
 */
export function setQuota(db: Db, orgId: string, monthly: number | null): Promise<boolean> {
  return executeOne(
    db,
    `WITH before AS MATERIALIZED (
       SELECT id, monthly_quota FROM organizations WHERE id = $1 FOR NO KEY UPDATE
     ), counted AS (
       INSERT INTO monthly_usage (org_id, month, emails)
       SELECT id, ${MONTH}, (SELECT coalesce(sum(${ALLOWANCE}), 0) FROM emails WHERE org_id = $1 AND created_at >= ${MONTH_BEGIN})
       FROM before WHERE monthly_quota IS NULL AND $2::bigint IS NOT NULL
       ON CONFLICT (org_id, month) DO UPDATE SET emails = excluded.emails
     )
     UPDATE organizations SET monthly_quota = $2 FROM before WHERE organizations.id = before.id`,
    [orgId, monthly],
  );
}
