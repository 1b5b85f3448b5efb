import type { Db } from './pool.ts';

export interface Organization {
  id: string;
  name: string;
  created_at: string;
}

export async function insertOrganization(db: Db, id: string, name: string): Promise<void> {
  await db.query(`INSERT INTO organizations (id, name) VALUES ($1, $2)`, [id, name]);
}

export async function listOrganizations(db: Db): Promise<Organization[]> {
  const { rows } = await db.query<Organization>(`SELECT id, name, created_at FROM organizations ORDER BY id`);
  return rows;
}

export async function organizationExists(db: Db, id: string): Promise<boolean> {
  const { rowCount } = await db.query(`SELECT FROM organizations WHERE id = $1`, [id]);
  return rowCount === 1;
}

export interface Domain {
  id: string;
  org_id: string;
  name: string;
  status: 'pending' | 'verified' | 'failed';
  created_at: string;
  verified_at: string | null;
}

/**
 * Adds a domain by its A-label. @returns undefined when another organization has verified it
 * @throws SQLSTATE 23505 when this organization has it, or another one has just verified it
 */
export async function insertDomain(
  db: Db,
  id: string,
  orgId: string,
  name: string,
  verified: boolean,
): Promise<Domain | undefined> {
  const { rows } = await db.query<Domain>(
    `INSERT INTO domains (id, org_id, name, status, verified_at)
     SELECT $1, $2, $3, CASE WHEN $4 THEN 'verified' ELSE 'pending' END, CASE WHEN $4 THEN now() END
     WHERE NOT EXISTS (SELECT FROM domains WHERE name = $3 AND status = 'verified' AND org_id <> $2)
     RETURNING id, org_id, name, status, created_at, verified_at`,
    [id, orgId, name, verified],
  );
  return rows[0];
}

export async function findDomains(db: Db, orgId: string, names: readonly string[]): Promise<Domain[]> {
  const { rows } = await db.query<Domain>(
    `SELECT id, org_id, name, status, created_at, verified_at FROM domains WHERE org_id = $1 AND name = ANY($2)`,
    [orgId, names],
  );
  return rows;
}
