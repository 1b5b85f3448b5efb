import { type Db, executeOne, queryOneValue, queryRow } from '../postgres/pool.ts';

/** The calendar month (UTC) by the database's clock, as monthly_usage names it. */
const MONTH = `date_trunc('month', now() AT TIME ZONE 'UTC')::date`;
const MONTH_BEGIN = `(date_trunc('month', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC')`;
/** An interval of months that is added to an instant would follow the session's time zone. */
const MONTH_END = `((date_trunc('month', now() AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC')`;

/** SQL of the number of copies of a stored email: what it has used of the quota. Repeated addresses count repeatedly here. */
export const COPIES = (email: string): string => `CASE WHEN ${email}.marketing
  THEN jsonb_array_length(${email}."to") + coalesce(jsonb_array_length(${email}.cc), 0)
       + coalesce(jsonb_array_length(${email}.bcc), 0) ELSE 1 END`;

/** SQL of what the emails of organization `$1` of this month use of a quota. It reads them: without a quota there is no counter. */
const STORED_COPIES = `(
  SELECT coalesce(sum(${COPIES('emails')}), 0) FROM emails WHERE org_id = $1 AND created_at >= ${MONTH_BEGIN})`;

/** An organization's quota and usage of this month. A marketing email counts once for each recipient. */
export interface Usage {
  /** Its quota; null is any number. */
  monthly: number | null;
  /** Emails accepted in this calendar month (UTC), canceled ones included. */
  used: number;
  /** When the next month begins. */
  resets_at: string;
  /** Whole seconds until then, at least 1. */
  resets_in: number;
}

/**
 * SQL of the emails that the quota of organization `org` leaves; negative after the quota was lowered, NULL without one. There
 * may be fewer when the emails are counted.
 */
export const LEFT_OF_QUOTA = (org: string): string => `(
  SELECT (monthly_quota - coalesce(
           (SELECT emails FROM monthly_usage WHERE org_id = ${org} AND month = ${MONTH}), 0))::float8
  FROM organizations WHERE id = ${org})`;

/** Returns the emails that an organization's quota leaves; null without one. */
export function findLeftOfQuota(db: Db, orgId: string): Promise<number | null> {
  return queryOneValue(db, {
    name: 'left_of_quota',
    text: `SELECT ${LEFT_OF_QUOTA('$1')} AS remaining`,
    values: [orgId],
  });
}

/**
 * Counts `wanted.emails` of organization `$1` if its quota leaves as many; counts nothing without a quota. Other transactions of
 * the organization wait until the end of this one, so that two cannot use the same rest of the quota.
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
/** True if the emails were counted, or the organization has no quota. */
export const WITHIN_QUOTA = `(NOT EXISTS (SELECT FROM quota, wanted) OR EXISTS (SELECT FROM counted_wanted))`;

/**
 * Counts copies of emails, the sum of `costOf`, against the quota of an organization.
 * @returns false if the quota leaves fewer; then nothing is counted
 */
export async function countAgainstQuota(db: Db, orgId: string, copies: number): Promise<boolean> {
  return queryOneValue(db, {
    name: 'count_against_quota',
    text: `WITH wanted AS (SELECT $2::bigint AS emails), ${COUNT_WANTED} SELECT ${WITHIN_QUOTA} AS within`,
    values: [orgId, copies],
  });
}

/**
 * Returns an organization's quota and usage of this month. Without a quota, the emails of the month are read, which may
 * take seconds.
 */
export function usage(db: Db, orgId: string): Promise<Usage | undefined> {
  return queryRow(
    db,
    `SELECT monthly_quota::float8 AS monthly,
            CASE WHEN monthly_quota IS NULL
              THEN ${STORED_COPIES}
              ELSE coalesce((SELECT emails FROM monthly_usage WHERE org_id = $1 AND month = ${MONTH}), 0)
            END::float8 AS used,
            ${MONTH_END} AS resets_at,
            greatest(1, ceil(extract(epoch FROM ${MONTH_END} - now())))::int AS resets_in
     FROM organizations WHERE id = $1`,
    [orgId],
  );
}

/**
 * Sets or removes the quota of an organization. Its first quota counts the emails of this month; emails that are being accepted
 * at that moment may be missing.
 * @param monthly emails of a calendar month; null is any number
 * @returns false if there is no such organization
 */
export function setQuota(db: Db, orgId: string, monthly: number | null): Promise<boolean> {
  return executeOne(
    db,
    `WITH before AS MATERIALIZED (
       SELECT id, monthly_quota FROM organizations WHERE id = $1 FOR NO KEY UPDATE
     ), counted AS (
       INSERT INTO monthly_usage (org_id, month, emails)
       SELECT id, ${MONTH}, ${STORED_COPIES}
       FROM before WHERE monthly_quota IS NULL AND $2::bigint IS NOT NULL
       ON CONFLICT (org_id, month) DO UPDATE SET emails = excluded.emails
     )
     UPDATE organizations SET monthly_quota = $2 FROM before WHERE organizations.id = before.id`,
    [orgId, monthly],
  );
}
