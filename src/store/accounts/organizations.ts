import { type Db, executeOne, queryRows } from '../postgres/pool.ts';

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

/** Sets whether members must have a second factor to open the organization's pages. */
export async function setSecondFactorRequired(db: Db, orgId: string, isRequired: boolean): Promise<void> {
  await db.query(`UPDATE organizations SET requires_second_factor = $2 WHERE id = $1`, [orgId, isRequired]);
}
