import { type Db, execute, queryRow } from '../postgres/pool.ts';

export interface SealedDataKey {
  readonly version: number;
  readonly sealed: Buffer;
}

/** @param version of the key, or null for the latest */
export function findDataKey(db: Db, orgId: string, version: number | null): Promise<SealedDataKey | undefined> {
  return queryRow(db, {
    name: 'find_data_key',
    text: `SELECT version, sealed FROM data_keys WHERE org_id = $1 AND ($2::integer IS NULL OR version = $2)
           ORDER BY version DESC LIMIT 1`,
    values: [orgId, version],
  });
}

/** Stores a data key, unless another process has stored one of this version meanwhile. */
export async function insertDataKey(db: Db, orgId: string, { version, sealed }: SealedDataKey): Promise<void> {
  await execute(db, `INSERT INTO data_keys (org_id, version, sealed) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, [
    orgId,
    version,
    sealed,
  ]);
}
