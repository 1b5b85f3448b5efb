import type { Db } from './pool.ts';

export const PRESETS = ['full_access', 'sending_access', 'read_only'] as const;
export type Preset = (typeof PRESETS)[number];

export interface ApiKey {
  id: string;
  org_id: string;
  preset: Preset;
  /** Ids of the domains it may send from; null is every domain of its organization. */
  domain_ids: string[] | null;
  /** SHA-256 of the key's secret part. */
  sha256: Buffer;
}

/** The key with this id, unless it was revoked. */
export async function findKey(db: Db, id: string): Promise<ApiKey | undefined> {
  const { rows } = await db.query<ApiKey>({
    name: 'find_key',
    text: `SELECT id, org_id, preset, domain_ids, sha256 FROM api_keys WHERE id = $1 AND revoked_at IS NULL`,
    values: [id],
  });
  return rows[0];
}

export async function insertKey(db: Db, key: ApiKey): Promise<void> {
  await db.query(`INSERT INTO api_keys (id, org_id, preset, domain_ids, sha256) VALUES ($1, $2, $3, $4, $5)`, [
    key.id,
    key.org_id,
    key.preset,
    key.domain_ids,
    key.sha256,
  ]);
}

/** Ends a key; false when there is no such key. Revoking it again changes nothing. */
export async function revokeKey(db: Db, id: string): Promise<boolean> {
  const { rowCount } = await db.query(`UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE id = $1`, [
    id,
  ]);
  return rowCount === 1;
}

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
