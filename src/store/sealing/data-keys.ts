import { type Db, execute, queryRow, queryValue } from '../postgres/pool.ts';

export interface SealedDataKey {
  readonly version: number;
  readonly sealed: Buffer;
}

/**
 * Random nonces of 96 bits allow 2^32 values for one key (NIST SP 800-38D, 8.3). A key is replaced at half of it, since processes
 * count their values late, and after a year.
 */
const MAX_SEALS = 2 ** 31;
const IS_DUE = `(seals >= ${MAX_SEALS} OR created_at < now() - interval '1 year')`;

/** @param version of the key, or null for the latest. @returns the key; `is_due` is true if it should be replaced by a new one */
export function findDataKey(
  db: Db,
  orgId: string,
  version: number | null,
): Promise<(SealedDataKey & { readonly is_due: boolean }) | undefined> {
  return queryRow(db, {
    name: 'find_data_key',
    text: `SELECT version, sealed, ${IS_DUE} AS is_due FROM data_keys WHERE org_id = $1 AND ($2::integer IS NULL OR version = $2)
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

/** Adds to the number of values that a key has sealed. @returns true if the key should be replaced by a new one */
export async function addSeals(db: Db, orgId: string, version: number, seals: number): Promise<boolean> {
  const isDue = await queryValue<boolean>(
    db,
    `UPDATE data_keys SET seals = seals + $3 WHERE org_id = $1 AND version = $2 RETURNING ${IS_DUE} AS is_due`,
    [orgId, version, seals],
  );
  return isDue === true;
}
