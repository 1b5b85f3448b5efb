import { type Db, executeOne, queryRow, queryRows } from '../postgres/pool.ts';

export interface Organization {
  id: string;
  name: string;
  created_at: string;
  /** When the operator suspended it; null while it is active. */
  suspended_at: string | null;
}

export async function insertOrganization(db: Db, id: string, name: string): Promise<void> {
  await db.query(`INSERT INTO organizations (id, name) VALUES ($1, $2)`, [id, name]);
}

export function listOrganizations(db: Db): Promise<Organization[]> {
  return queryRows(db, `SELECT id, name, created_at, suspended_at FROM organizations ORDER BY id`);
}

export function organizationExists(db: Db, id: string): Promise<boolean> {
  return executeOne(db, `SELECT FROM organizations WHERE id = $1`, [id]);
}

/** The settings of an organization that its members see. */
export interface OrganizationSettings {
  created_at: string;
  /** Emails that may be accepted in a calendar month (UTC); null is any number. */
  monthly_quota: number | null;
  /** Days after which bodies of emails are erased; 0 is never, null is the setting BODY_RETENTION_DAYS. */
  body_retention_days: number | null;
}

export function readOrganizationSettings(db: Db, id: string): Promise<OrganizationSettings | undefined> {
  return queryRow(
    db,
    `SELECT created_at, monthly_quota::float8 AS monthly_quota, body_retention_days FROM organizations WHERE id = $1`,
    [id],
  );
}

/** Renames an organization; false if there is none. */
export function setOrganizationName(db: Db, id: string, name: string): Promise<boolean> {
  return executeOne(db, `UPDATE organizations SET name = $2 WHERE id = $1`, [id, name]);
}

/** Sets whether members must have a second factor to open the organization's pages. */
export async function setSecondFactorRequired(db: Db, orgId: string, isRequired: boolean): Promise<void> {
  await db.query(`UPDATE organizations SET requires_second_factor = $2 WHERE id = $1`, [orgId, isRequired]);
}
