import { type Db, executeOne, queryColumn, queryRow } from '../postgres/pool.ts';

/** SQL: whether the organization with this id is suspended. */
export const IS_SUSPENDED = (orgId: string): string =>
  `EXISTS (SELECT FROM organizations WHERE id = ${orgId} AND suspended_at IS NOT NULL)`;

/** SQL: milliseconds since the organization with this id was suspended; NULL while it is active. */
export const SUSPENDED_FOR = (orgId: string): string =>
  `(SELECT (extract(epoch FROM clock_timestamp() - suspended_at) * 1000)::float8 FROM organizations WHERE id = ${orgId})`;

/** SQL: the ids of all suspended organizations, read once per statement. */
export const SUSPENDED_ORGANIZATIONS = `ARRAY(SELECT id FROM organizations WHERE suspended_at IS NOT NULL)`;

export interface Suspension {
  /** Null while the organization is active. */
  suspended_at: string | null;
  suspended_reason: string | null;
}

/** Suspends an organization, or changes its reason. @returns undefined when there is no such organization */
export function suspend(db: Db, orgId: string, reason: string | null): Promise<Suspension | undefined> {
  return queryRow(
    db,
    `UPDATE organizations SET suspended_at = coalesce(suspended_at, now()), suspended_reason = $2 WHERE id = $1
     RETURNING suspended_at, suspended_reason`,
    [orgId, reason],
  );
}

/**
 * Ends the suspension of an organization, if it is suspended.
 * @returns undefined when there is no such organization
 */
export function resume(db: Db, orgId: string): Promise<Suspension | undefined> {
  return queryRow(
    db,
    `UPDATE organizations SET suspended_at = NULL, suspended_reason = NULL WHERE id = $1
     RETURNING suspended_at, suspended_reason`,
    [orgId],
  );
}

/** Returns true if any organization is suspended. */
export function hasSuspended(db: Db): Promise<boolean> {
  return executeOne(db, {
    name: 'has_suspended',
    text: `SELECT FROM organizations WHERE suspended_at IS NOT NULL LIMIT 1`,
  });
}

/** Returns the ids of those emails whose organization is suspended. */
export async function findSuspendedEmails(db: Db, ids: readonly string[]): Promise<Set<string>> {
  const suspended = await queryColumn<string>(
    db,
    `SELECT id FROM emails WHERE id = ANY ($1) AND org_id = ANY (${SUSPENDED_ORGANIZATIONS})`,
    [ids],
  );
  return new Set(suspended);
}
