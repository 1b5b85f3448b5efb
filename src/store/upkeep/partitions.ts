import { lockAggregation } from '../emails/tags.ts';
import { type Db, execute, type Pool, queryColumn, queryRow, queryRows, transaction } from '../postgres/pool.ts';

/** The tables that are partitioned by the id of an email, and the column that holds it. */
const PARTITIONED = {
  emails: 'id',
  email_bodies: 'email_id',
  email_events: 'email_id',
  email_recipients: 'email_id',
  email_tags: 'email_id',
  email_terms: 'email_id',
} as const;
export type PartitionedTable = keyof typeof PARTITIONED;
export const PARTITIONED_TABLES = Object.keys(PARTITIONED) as PartitionedTable[];

/** All partitioned tables with their keys: those of emails, and the log of requests, by request id. */
const KEYS = { ...PARTITIONED, api_requests: 'id' } as const;
type AnyPartitioned = keyof typeof KEYS;

export interface Partition {
  /** Its name is that of the table, `_` and this: the day on which it begins, or `first`. */
  readonly suffix: string;
  /** The lower bound of its ids; the first partition has none. */
  readonly first_id: string | null;
  /** The exclusive upper bound of its ids. */
  readonly end_id: string;
}

/** A range of ids of emails: its start, and its exclusive end. */
export interface IdRange {
  readonly first_id: string;
  readonly end_id: string;
}

/** The partitions of a table, oldest first, without the default partition. */
export function listPartitions(db: Db, table: AnyPartitioned): Promise<Partition[]> {
  return queryRows(db, `SELECT suffix, first_id, end_id FROM partitions_of($1)`, [table]);
}

/** Adds a partition to a table unless it has it. Fails with 55P03 if the table is locked for longer than 2 s. */
export async function addPartition(
  db: Db,
  table: AnyPartitioned,
  { suffix, first_id, end_id }: Partition,
): Promise<void> {
  await execute(db, `SELECT add_partition($1, $2, $3, $4, $5)`, [table, KEYS[table], suffix, first_id, end_id]);
}

/**
 * Drops a partition of a table of emails. Its rows of the emails `kept` move to the default partition. Fails with 55P03 if the table is
 * locked for longer than 2 s.
 */
export async function dropPartitionKeeping(
  db: Db,
  table: PartitionedTable,
  suffix: string,
  kept: readonly string[],
): Promise<void> {
  await execute(db, `SELECT drop_partition_keeping($1, $2, $3, $4)`, [table, PARTITIONED[table], suffix, kept]);
}

/** Drops a partition with its rows. Fails with 55P03 if the table is locked for longer than 2 s. */
export async function dropPartition(db: Db, table: AnyPartitioned, suffix: string): Promise<void> {
  await execute(db, `SELECT drop_partition($1, $2)`, [table, suffix]);
}

/** SQL of whether an email is still to be sent, at least to some recipients, or has a file that is not deleted. */
const IS_IN_USE = `(
  email.status IN ('queued', 'scheduled')
  OR EXISTS (SELECT FROM email_recipients WHERE email_id = email.id AND status = 'queued' OFFSET 0)
  OR EXISTS (SELECT FROM attachments WHERE email_id = email.id AND deleted_at IS NULL OFFSET 0))`;

/** More emails in use than this keep their partition, since they are moved under a lock of the whole table. */
const MAX_MOVED = 1_000;

/**
 * Subtracts the tags of at most `limit` emails of a partition from the counts, from where the last call ended. After the last email,
 * drops the partition of `emails` in the same transaction. The emails of it that are in use move to the default partition.
 * @returns the number of emails; null if the partition is kept, because too many of its emails are in use
 */
export function expirePartition(
  pool: Pool,
  { suffix, first_id, end_id }: Partition,
  limit: number,
): Promise<number | null> {
  return transaction(pool, async (client) => {
    const expiring = await queryRow<{ last_id: string }>(
      client,
      `INSERT INTO expiring_partitions (suffix, last_id) VALUES ($1, $2)
       ON CONFLICT (suffix) DO UPDATE SET suffix = excluded.suffix RETURNING last_id`,
      [suffix, first_id ?? ''],
    );
    const after = expiring?.last_id ?? '';
    // The whole partition is checked before the first subtraction: the emails of a kept one must stay counted.
    if (after === (first_id ?? '') && (await findInUse(client, after, end_id)).length > MAX_MOVED) return null;
    const found = await queryRow<{ emails: number; last_id: string }>(
      client,
      `SELECT count(*)::int AS emails, coalesce(max(id), $1) AS last_id
       FROM (SELECT id FROM emails WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3) AS next`,
      [after, end_id, limit],
    );
    if (!found) return null;
    await addToTagCounts(client, -1, { after, last: found.last_id });
    if (found.emails === limit) {
      await execute(client, `UPDATE expiring_partitions SET last_id = $2 WHERE suffix = $1`, [suffix, found.last_id]);
    } else {
      const moved = await findInUse(client, first_id ?? '', end_id);
      await addToTagCounts(client, 1, { ids: moved });
      await dropPartitionKeeping(client, 'emails', suffix, moved);
      await execute(client, `DELETE FROM expiring_partitions WHERE suffix = $1`, [suffix]);
    }
    return found.emails;
  });
}

/** Finds emails of the range that are still to be sent, or have a file that was not deleted yet; at most one more than `MAX_MOVED`. */
function findInUse(db: Db, after: string, end: string): Promise<string[]> {
  return queryColumn(
    db,
    `SELECT id FROM (
       SELECT unsent.id FROM organizations AS org CROSS JOIN LATERAL (
         SELECT id FROM emails WHERE org_id = org.id AND status IN ('queued', 'scheduled') AND id > $1 AND id < $2 LIMIT $3
       ) AS unsent
       UNION SELECT email_id FROM email_recipients WHERE email_id > $1 AND email_id < $2 AND status = 'queued'
       UNION SELECT email_id FROM attachments WHERE email_id > $1 AND email_id < $2 AND deleted_at IS NULL
     ) AS used ORDER BY id LIMIT $3`,
    [after, end, MAX_MOVED + 1],
  );
}

/** Emails by their ids, or a range of them: after an id, up to the last one. */
type Counted = { readonly after: string; readonly last: string } | { readonly ids: readonly string[] };

/** Adds the tags of emails to the counts, or subtracts them. */
async function addToTagCounts(db: Db, sign: 1 | -1, emails: Counted): Promise<void> {
  const [condition, values] =
    'ids' in emails ? ['id = ANY ($1)', [emails.ids]] : ['id > $1 AND id <= $2', [emails.after, emails.last]];
  const counted = `
    SELECT org_id, tag.name, tag.value, count(*) AS emails
    FROM emails CROSS JOIN jsonb_to_recordset(tags) AS tag(name text, value text)
    WHERE ${condition} AND tag_bits <> 0 GROUP BY org_id, tag.name, tag.value`;
  await lockAggregation(db);
  if (sign === 1) {
    await execute(
      db,
      `INSERT INTO tag_counts AS tag (org_id, name, value, emails) ${counted} ORDER BY org_id, name, value
       ON CONFLICT (org_id, name, value) DO UPDATE SET emails = tag.emails + excluded.emails`,
      values,
    );
    return;
  }
  const isSame = (table: string) =>
    `${table}.org_id = counted.org_id AND ${table}.name = counted.name AND ${table}.value = counted.value`;
  // Tags that no email has are deleted, since they would count against the limit of distinct tags.
  await execute(
    db,
    `WITH counted AS (${counted}), removed AS (
       DELETE FROM tag_counts AS tag USING counted WHERE ${isSame('tag')} AND tag.emails <= counted.emails
     )
     UPDATE tag_counts AS tag SET emails = tag.emails - counted.emails
     FROM counted WHERE ${isSame('tag')} AND tag.emails > counted.emails`,
    values,
  );
}

/** Returns the emails of a range without a partition: they were in use when it was dropped. */
export function findMoved(db: Db, { first_id, end_id }: IdRange): Promise<string[]> {
  return queryColumn(db, `SELECT id FROM emails WHERE id >= $1 AND id < $2`, [first_id, end_id]);
}

/** Deletes emails of a range without a partition that are no longer in use. @returns their number */
export function deleteMoved(pool: Pool, { first_id, end_id }: IdRange, limit: number): Promise<number> {
  return transaction(pool, async (client) => {
    const ids = await queryColumn<string>(
      client,
      `SELECT id FROM emails AS email WHERE id >= $1 AND id < $2 AND NOT ${IS_IN_USE} ORDER BY id LIMIT $3 FOR UPDATE`,
      [first_id, end_id, limit],
    );
    if (ids.length === 0) return 0;
    await addToTagCounts(client, -1, { ids });
    for (const [table, key] of Object.entries(PARTITIONED).toReversed()) {
      await execute(client, `DELETE FROM ${table} WHERE ${key} = ANY ($1)`, [ids]);
    }
    return ids.length;
  });
}

/** Finds queued emails of a range whose organization has been suspended for longer than the retention. */
export function findAbandoned(db: Db, after: string, end: string, days: number, limit: number): Promise<string[]> {
  return queryColumn(
    db,
    `SELECT email.id FROM organizations AS org CROSS JOIN LATERAL (
       SELECT id FROM emails WHERE org_id = org.id AND status = 'queued' AND id > $1 AND id < $2 LIMIT $4
     ) AS email
     WHERE org.suspended_at < now() - make_interval(days => $3) LIMIT $4`,
    [after, end, days, limit],
  );
}

/** Tables with rows of emails that are not partitioned: the table, its key, and the column with the id of the email. */
const DEPENDENT_TABLES = [
  { table: 'attempts', key: 'message_id, n', id: 'message_id' },
  { table: 'attachments', key: 'id', id: 'email_id' },
  { table: 'held_bodies', key: 'email_id', id: 'email_id' },
] as const;

/**
 * Deletes what belongs to emails whose partitions were dropped, at most `limit` rows of each table.
 * @param range the ids of these emails
 * @returns how many rows were deleted of the table with the most
 */
export async function deleteDependentRows(db: Db, { first_id, end_id }: IdRange, limit: number): Promise<number> {
  const counts = [
    await execute(
      db,
      `WITH deleted AS (
         DELETE FROM batches WHERE id IN (
             SELECT id FROM batches WHERE id >= 'bt_' || substr($1, 4) AND id < 'bt_' || substr($2, 4) ORDER BY id LIMIT $3
           )
           AND NOT EXISTS (SELECT FROM emails WHERE org_id = batches.org_id AND created_at = batches.created_at
                             AND batch_id = batches.id)
         RETURNING id
       ), moves AS (
         DELETE FROM batch_moves WHERE batch_id IN (SELECT id FROM deleted)
       )
       SELECT FROM deleted`,
      [first_id, end_id, limit],
    ),
  ];
  for (const { table, key, id } of DEPENDENT_TABLES) {
    const oldest = `SELECT ${key} FROM ${table} WHERE ${id} >= $1 AND ${id} < $2
                    AND NOT EXISTS (SELECT FROM emails WHERE emails.id = ${table}.${id} OFFSET 0) ORDER BY ${id} LIMIT $3`;
    counts.push(await execute(db, `DELETE FROM ${table} WHERE (${key}) IN (${oldest})`, [first_id, end_id, limit]));
  }
  return Math.max(...counts);
}
