import { type Cursor, cursorValues } from '../postgres/page.ts';
import { type Db, execute, executeOne, queryColumn, queryRow, queryRows, queryValue } from '../postgres/pool.ts';

export const PRESETS = ['full_access', 'sending_access', 'read_only'] as const;
export type Preset = (typeof PRESETS)[number];

/** A key as its owner sees it, without its secret. */
export interface KeySummary {
  id: string;
  name: string | null;
  preset: Preset;
  /** Ids of the domains it may send from; null is every domain of its organization. */
  domain_ids: string[] | null;
  expires_at: string | null;
  /** Addresses and ranges it may be used from; null is anywhere. */
  allowed_ips: string[] | null;
  /** To about a minute; null is never. */
  last_used_at: string | null;
  created_at: string;
}

/** The fields of a key that authorize requests. */
export interface ApiKey extends Omit<KeySummary, 'name' | 'last_used_at' | 'created_at'> {
  org_id: string;
  /** Milliseconds until it expires, by the database's clock; null is never. */
  expires_in: number | null;
  /** SHA-256 of the key's secret part. */
  sha256: Buffer;
}

type NewKey = Omit<ApiKey, 'expires_in'> & { name: string | null };

const SUMMARY = 'id, name, preset, domain_ids, expires_at, allowed_ips, last_used_at, created_at';

/** Reads keys that are neither revoked nor expired. */
export function findKeys(db: Db, ids: readonly string[]): Promise<ApiKey[]> {
  return queryRows(db, {
    name: 'find_keys',
    text: `SELECT id, org_id, preset, domain_ids, allowed_ips, sha256, expires_at,
                  (extract(epoch FROM expires_at - now()) * 1000)::float8 AS expires_in
           FROM api_keys WHERE id = ANY ($1::text[]) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`,
    values: [ids],
  });
}

export async function findKey(db: Db, id: string): Promise<ApiKey | undefined> {
  return (await findKeys(db, [id]))[0];
}

/** Stores a key. @returns undefined when the time at which it would expire has passed, by the database's clock */
export function insertKey(db: Db, key: NewKey): Promise<KeySummary | undefined> {
  return queryRow(
    db,
    `INSERT INTO api_keys (id, org_id, name, preset, domain_ids, expires_at, allowed_ips, sha256)
     SELECT $1, $2, $3, $4, $5, $6::timestamptz, $7, $8 WHERE $6::timestamptz IS NULL OR $6 > now()
     RETURNING ${SUMMARY}`,
    [key.id, key.org_id, key.name, key.preset, key.domain_ids, key.expires_at, key.allowed_ips, key.sha256],
  );
}

/** Returns those of the ids that are not domains of the organization. */
export function missingDomains(db: Db, orgId: string, ids: readonly string[]): Promise<string[]> {
  return queryColumn(
    db,
    `SELECT wanted.id FROM unnest($2::text[]) AS wanted(id)
     WHERE NOT EXISTS (SELECT FROM domains WHERE domains.id = wanted.id AND org_id = $1)`,
    [orgId, ids],
  );
}

/** Only keys that are bound to domains among these; null is no condition. */
type Within = readonly string[] | null;

/** A key of an organization, expired or not, unless it was revoked. */
export function showKey(db: Db, orgId: string, id: string, within: Within = null): Promise<KeySummary | undefined> {
  return queryRow(
    db,
    `SELECT ${SUMMARY} FROM api_keys
     WHERE id = $1 AND org_id = $2 AND revoked_at IS NULL AND ($3::text[] IS NULL OR domain_ids <@ $3)`,
    [id, orgId, within],
  );
}

/** Keys of an organization that were not revoked, newest first. */
export function listKeys(
  db: Db,
  orgId: string,
  after: Cursor | null,
  limit: number,
  within: Within = null,
): Promise<KeySummary[]> {
  return queryRows(
    db,
    `SELECT ${SUMMARY} FROM api_keys
     WHERE org_id = $1 AND revoked_at IS NULL AND (created_at, id) < ($2::timestamptz, $3)
       AND ($5::text[] IS NULL OR domain_ids <@ $5)
     ORDER BY created_at DESC, id DESC LIMIT $4`,
    [orgId, ...cursorValues(after), limit, within],
  );
}

/** Revokes a key of any organization; false if there is no such key. Revoking it again changes nothing. */
export function revokeKey(db: Db, id: string): Promise<boolean> {
  return executeOne(db, `UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE id = $1`, [id]);
}

export function organizationOfKey(db: Db, id: string): Promise<string | undefined> {
  return queryValue(db, `SELECT org_id FROM api_keys WHERE id = $1`, [id]);
}

/** Revokes a key of an organization; false if it has no such key or the key is revoked. */
export function revokeKeyOf(db: Db, orgId: string, id: string, within: Within): Promise<boolean> {
  return executeOne(
    db,
    `UPDATE api_keys SET revoked_at = now()
     WHERE id = $1 AND org_id = $2 AND revoked_at IS NULL AND ($3::text[] IS NULL OR domain_ids <@ $3)`,
    [id, orgId, within],
  );
}

/** Returns the names of an organization's keys by id, also of revoked ones. Keys without a name are left out. */
export async function findKeyNames(db: Db, orgId: string, ids: readonly string[]): Promise<Map<string, string>> {
  const keys = await queryRows<{ id: string; name: string }>(
    db,
    `SELECT id, name FROM api_keys WHERE id = ANY ($1) AND org_id = $2 AND name IS NOT NULL`,
    [ids, orgId],
  );
  return new Map(keys.map(({ id, name }) => [id, name]));
}

/** Names a key of an organization; false if it has no such key or the key is revoked. @param name null is none */
export function renameKey(db: Db, orgId: string, id: string, name: string | null): Promise<boolean> {
  return executeOne(db, `UPDATE api_keys SET name = $3 WHERE id = $1 AND org_id = $2 AND revoked_at IS NULL`, [
    id,
    orgId,
    name,
  ]);
}

/** Records that keys are in use now. Skips keys that another process is recording. */
export async function recordUses(db: Db, ids: readonly string[]): Promise<void> {
  await execute(db, {
    name: 'record_key_uses',
    text: `UPDATE api_keys SET last_used_at = now()
           FROM (SELECT id FROM api_keys WHERE id = ANY ($1::text[]) FOR NO KEY UPDATE SKIP LOCKED) AS used
           WHERE api_keys.id = used.id`,
    values: [ids],
  });
}
