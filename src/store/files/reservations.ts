import { type Db, execute, queryColumn, queryOneRow } from '../postgres/pool.ts';
import { columns } from '../postgres/columns.ts';
import { LEFT_OF_QUOTA } from '../limits/quota.ts';

/**
 * Reserves files of an organization before they are written, unless its quota is used up or they would exceed its storage
 * limit. The bytes are counted here; the quota is only checked, and counted with the email.
 * @param maxStoredBytes 0 is no limit
 * @param cost what the email takes from the quota
 */
export async function reserveFiles(
  db: Db,
  orgId: string,
  files: readonly { readonly id: string; readonly size: number }[],
  { maxStoredBytes, cost }: { readonly maxStoredBytes: number; readonly cost: number },
): Promise<{ refusal: 'quota' | 'bytes' | null }> {
  return queryOneRow(db, {
    name: 'reserve_files',
    text: `WITH file AS MATERIALIZED (
             SELECT id, size FROM unnest($2::text[], $3::bigint[]) AS file(id, size)
           ), quota AS MATERIALIZED (
             SELECT coalesce(${LEFT_OF_QUOTA('$1')} >= $5::float8, true) AS is_enough
           ), counted AS (
             INSERT INTO stored_bytes AS stored (org_id, bytes)
             SELECT $1, sum(size) FROM file CROSS JOIN quota WHERE is_enough
             HAVING count(*) > 0 AND ($4::bigint = 0 OR sum(size) <= $4)
             ON CONFLICT (org_id) DO UPDATE SET bytes = stored.bytes + excluded.bytes
               WHERE $4 = 0 OR stored.bytes + excluded.bytes <= $4
             RETURNING bytes
           ), reserved AS (
             INSERT INTO file_reservations (id, org_id, size_bytes)
             SELECT id, $1, size FROM file WHERE EXISTS (SELECT FROM counted)
           )
           SELECT CASE WHEN NOT (SELECT is_enough FROM quota) THEN 'quota'
                       WHEN NOT EXISTS (SELECT FROM counted) THEN 'bytes' END AS refusal`,
    values: [orgId, ...columns(files, 'id', 'size'), maxStoredBytes, cost],
  });
}

/**
 * Abandons reservations that are an hour old. No request can still store an email with their files. Each call moves them to the end
 * of the queue, so that files which cannot be removed do not block the others.
 * @returns ids of files to remove, at most `limit`
 */
export function abandonReservations(db: Db, limit: number): Promise<string[]> {
  return queryColumn(db, {
    name: 'abandon_reservations',
    text: `UPDATE file_reservations SET abandoned_at = now()
           WHERE id = ANY (ARRAY(
             SELECT id FROM file_reservations WHERE created_at < now() - interval '1 hour'
             ORDER BY coalesce(abandoned_at, created_at) LIMIT $1 FOR UPDATE SKIP LOCKED))
           RETURNING id`,
    values: [limit],
  });
}

/** Deletes the reservations of removed files that never belonged to an email. */
export async function deleteReservations(db: Db, ids: readonly string[]): Promise<void> {
  await execute(db, {
    name: 'delete_reservations',
    text: `WITH removed AS (
             DELETE FROM file_reservations WHERE id = ANY ($1) RETURNING org_id, size_bytes AS bytes
           )${SUBTRACT_STORED_BYTES}
           SELECT`,
    values: [ids],
  });
}

/** Stops counting the bytes of reserved files that could not be written. Upkeep still removes what may have been written. */
export async function releaseReservedBytes(db: Db, ids: readonly string[]): Promise<void> {
  await execute(db, {
    name: 'release_reserved_bytes',
    text: `WITH removed AS MATERIALIZED (
             SELECT id, org_id, size_bytes AS bytes FROM file_reservations WHERE id = ANY ($1) FOR UPDATE
           ), emptied AS (
             UPDATE file_reservations SET size_bytes = 0 WHERE id IN (SELECT id FROM removed)
           )${SUBTRACT_STORED_BYTES}
           SELECT`,
    values: [ids],
  });
}

/** The part of a statement that subtracts what the part `removed(org_id, bytes)` frees. Begins with a comma. */
export const SUBTRACT_STORED_BYTES = `
  , freed AS (
    SELECT org_id, sum(bytes) AS bytes FROM removed GROUP BY org_id ORDER BY org_id
  ), subtracted AS (
    UPDATE stored_bytes AS stored SET bytes = greatest(0, stored.bytes - freed.bytes)
    FROM freed WHERE stored.org_id = freed.org_id
  )`;
