import { type BatchCounts, type BatchStatus, batchStatus, PENDING_STATUSES } from '../../domain/email/batch.ts';
import { EMAIL_STATUSES } from '../../domain/email/email.ts';
import { type IdempotencyKey, rememberResponses } from '../limits/idempotency.ts';
import { columns } from '../postgres/columns.ts';
import { type Cursor, cursorValues } from '../postgres/page.ts';
import {
  type Db,
  execute,
  executeOne,
  queryColumn,
  queryOneRow,
  queryOneValue,
  queryRow,
  queryRows,
} from '../postgres/pool.ts';
import { LEFT_OF_QUOTA } from '../limits/quota.ts';
import type { RecordedChange } from './changes.ts';

/** A batch in the response to its creation. */
export interface AcceptedBatch {
  id: string;
  total: number;
  status: 'queued';
  created_at: string;
}

/**
 * Stores a batch, and the response under the idempotency key of the request, if it has one. The caller stores the members in the
 * same transaction.
 * @param scheduled how many of the `total` members have a time of their own
 * @param keyId the API key of the request
 * @returns the response, and the emails that the organization's quota leaves before this batch; null without a quota
 * @throws SQLSTATE 23505 if the key has been used meanwhile
 */
export async function insertBatch(
  client: Db,
  orgId: string,
  { id, total, scheduled, keyId }: { id: string; total: number; scheduled: number; keyId?: string | undefined },
  idempotency: IdempotencyKey | undefined,
): Promise<{ accepted: AcceptedBatch; left: number | null }> {
  const { created_at, left } = await queryOneRow<{ created_at: string; left: number | null }>(
    client,
    `INSERT INTO batches (id, org_id, total, created_at, key_id) VALUES ($1, $2, $3, now(), $4)
     RETURNING created_at, ${LEFT_OF_QUOTA('$2')} AS left`,
    [id, orgId, total, keyId],
  );
  const accepted: AcceptedBatch = { id, total, status: 'queued', created_at };
  await Promise.all([
    execute(
      client,
      `INSERT INTO batch_moves (batch_id, to_status, members, at)
       SELECT $1, status, members, $4 FROM (VALUES ('queued', $2::integer), ('scheduled', $3)) AS move(status, members)
       WHERE members > 0`,
      [id, total - scheduled, scheduled, created_at],
    ),
    rememberResponses(client, orgId, idempotency ? [{ ...idempotency, response: accepted }] : []),
  ]);
  return { accepted, left };
}

/** Records how members of batches change their status. */
export async function recordBatchMoves(client: Db, changes: readonly RecordedChange[]): Promise<void> {
  const moves = changes.filter(
    ({ email, from_status, to_status }) => email.batch_id !== null && from_status !== to_status,
  );
  if (moves.length === 0) return;
  await execute(client, {
    name: 'record_batch_moves',
    text: `INSERT INTO batch_moves (batch_id, from_status, to_status, members, at)
           SELECT batch_id, from_status, to_status, count(*), coalesce(max(at), clock_timestamp())
           FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) AS move(batch_id, from_status, to_status, at)
           GROUP BY batch_id, from_status, to_status`,
    values: [moves.map(({ email }) => email.batch_id), ...columns(moves, 'from_status', 'to_status', 'at')],
  });
}

/** A batch with its progress. */
export interface Batch {
  id: string;
  total: number;
  status: BatchStatus;
  created_at: string;
  /** When the last member was no longer pending; null while one is. */
  completed_at: string | null;
  counts: BatchCounts;
}

/** The stored fields of a batch, from which the others are derived. */
interface BatchRow {
  id: string;
  total: number;
  created_at: string;
  counts: BatchCounts;
  last_at: string;
}

const PENDING_LIST = `(${PENDING_STATUSES.map((status) => `'${status}'`).join()})`;

/** Counts by status, and the time of the last change into or out of a pending status. */
const BATCHES = `
  SELECT batch.id, batch.total, batch.created_at, progress.counts, progress.last_at
  FROM batches AS batch CROSS JOIN LATERAL (
    SELECT json_object_agg(status, members) FILTER (WHERE members > 0) AS counts,
           max(last_at) FILTER (WHERE status IN ${PENDING_LIST}) AS last_at
    FROM (
      SELECT side.status, sum(side.members) AS members, max(move.at) AS last_at
      FROM batch_moves AS move CROSS JOIN LATERAL (
        VALUES (move.to_status, move.members), (move.from_status, -move.members)
      ) AS side(status, members)
      WHERE move.batch_id = batch.id AND side.status IS NOT NULL GROUP BY side.status
    ) AS by_status
  ) AS progress`;

function toBatch({ id, total, created_at, counts, last_at }: BatchRow): Batch {
  const status = batchStatus(total, counts);
  const isOver = status === 'completed' || status === 'canceled';
  const inOrder = EMAIL_STATUSES.filter((each) => counts[each]).map((each) => [each, counts[each]]);
  const ordered = Object.fromEntries(inOrder) as BatchCounts;
  return { id, total, status, created_at, completed_at: isOver ? last_at : null, counts: ordered };
}

/** Finds a batch with its current progress. */
export async function findBatch(db: Db, orgId: string, id: string): Promise<Batch | undefined> {
  const row = await queryRow<BatchRow>(db, {
    name: 'find_batch',
    text: `${BATCHES} WHERE batch.id = $1 AND batch.org_id = $2`,
    values: [id, orgId],
  });
  return row && toBatch(row);
}

/** Batches of an organization, newest first. */
export async function listBatches(db: Db, orgId: string, after: Cursor | null, limit: number): Promise<Batch[]> {
  const rows = await queryRows<BatchRow>(db, {
    name: 'list_batches',
    text: `${BATCHES}
      WHERE batch.org_id = $1
        AND (batch.created_at, batch.id) < ($2::timestamptz, $3)
      ORDER BY batch.created_at DESC, batch.id DESC LIMIT $4`,
    values: [orgId, ...cursorValues(after), limit],
  });
  return rows.map(toBatch);
}

/** Returns the subject of the first member of each batch. Members have the `created_at` of their batch, by which they are found. */
export async function firstSubjects(db: Db, orgId: string, ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await queryRows<{ id: string; subject: string }>(db, {
    name: 'first_subjects',
    text: `SELECT batch.id, first.subject FROM batches AS batch CROSS JOIN LATERAL (
             SELECT subject FROM emails
             WHERE org_id = $1 AND created_at = batch.created_at AND batch_id = batch.id ORDER BY id LIMIT 1
           ) AS first
           WHERE batch.id = ANY ($2) AND batch.org_id = $1`,
    values: [orgId, ids],
  });
  return new Map(rows.map(({ id, subject }) => [id, subject]));
}

/** Lists the scheduled members of a batch, in their order. */
export function scheduledMembers(db: Db, orgId: string, batchId: string): Promise<{ id: string; from: string }[]> {
  return queryRows(db, {
    name: 'scheduled_members',
    text: `SELECT id, "from" FROM emails
           WHERE org_id = $1 AND created_at = (SELECT created_at FROM batches WHERE id = $2) AND batch_id = $2
             AND status = 'scheduled'
           ORDER BY id`,
    values: [orgId, batchId],
  });
}

/**
 * Finds completed batches that were not announced, by their own ids or ids of their members. A batch is completed when as many
 * members have left the pending statuses as have entered them. OFFSET 0 prevents a plan that counts the members of all batches.
 */
export async function findFinishedBatches(db: Db, ids: readonly string[]): Promise<{ id: string; org_id: string }[]> {
  if (ids.length === 0) return [];
  return queryRows(db, {
    name: 'find_finished_batches',
    text: `SELECT batch.id, batch.org_id
           FROM (
             SELECT batch_id AS id FROM emails WHERE id = ANY ($1::text[]) AND batch_id IS NOT NULL
             UNION SELECT unnest($1::text[])
           ) AS named CROSS JOIN LATERAL (
             SELECT id, org_id FROM batches WHERE id = named.id AND announced_at IS NULL OFFSET 0
           ) AS batch
           WHERE (
             SELECT sum(members) FILTER (WHERE to_status IN ${PENDING_LIST})
                  = sum(members) FILTER (WHERE from_status IN ${PENDING_LIST})
             FROM batch_moves WHERE batch_id = batch.id
           )`,
    values: [ids],
  });
}

/** Marks the end of a batch as announced. @returns false if it was already */
export function markAnnounced(db: Db, id: string): Promise<boolean> {
  return executeOne(db, `UPDATE batches SET announced_at = now() WHERE id = $1 AND announced_at IS NULL`, [id]);
}

/** Lists ids of batches that were not announced, after a certain one, at most `limit`. */
export function findUnannounced(db: Db, after: string | null, limit: number): Promise<string[]> {
  return queryColumn(
    db,
    `SELECT id FROM batches WHERE announced_at IS NULL AND id > coalesce($1, '') ORDER BY id LIMIT $2`,
    [after, limit],
  );
}

/**
 * Sums up the moves of batches with a move older than a minute, so that counts are read from one row per pair of statuses.
 * Readers see the same sums before and after; concurrent calls take different rows.
 * @param limit the maximum number of batches @returns the number of batches
 */
export async function aggregateBatchMoves(db: Db, limit: number): Promise<number> {
  return queryOneValue(
    db,
    `WITH due AS MATERIALIZED (
       SELECT DISTINCT batch_id FROM (
         SELECT batch_id FROM batch_moves WHERE NOT folded AND at < now() - interval '1 minute' ORDER BY at LIMIT $1
       ) AS oldest
     ), taken AS (
       DELETE FROM batch_moves USING due WHERE batch_moves.batch_id = due.batch_id RETURNING batch_moves.*
     ), sums AS (
       INSERT INTO batch_moves (batch_id, from_status, to_status, members, at, folded)
       SELECT batch_id, from_status, to_status, sum(members), max(at), true FROM taken
       GROUP BY batch_id, from_status, to_status
     )
     SELECT count(DISTINCT batch_id)::int AS batches FROM taken`,
    [limit],
  );
}
