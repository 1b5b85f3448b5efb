import type { Tag } from '../../domain/email/email.ts';
import { TAGS } from '../../domain/limits.ts';
import { type Db, execute, queryOneRow, queryOneValue, queryRows } from '../postgres/pool.ts';
import { columns } from '../postgres/columns.ts';

/** tag_bits() of all of an email's tags, from its column `tags` and its organization `$1`. */
export const TAG_BITS = `(
  SELECT coalesce(bit_or(tag_bits(tag_key($1, tag.name, tag.value))), 0)
  FROM (SELECT * FROM jsonb_to_recordset(tags) AS tag(name text, value text) LIMIT ${TAGS}) AS tag)`;

export interface TagCount extends Tag {
  /** Stored emails with the tag, in any status. */
  count: number;
}

/**
 * Tags of an organization with their exact counts, by name and then value in byte order.
 * @param after the tag after which the page begins, or null for the first page
 */
export function listTags(db: Db, orgId: string, after: Tag | null, limit: number): Promise<TagCount[]> {
  return queryRows(db, {
    name: 'list_tags',
    // The first `limit` rows of tag_counts suffice: later tags come after them, and additions do not change the order.
    text: `SELECT name, value, sum(emails)::float8 AS count
           FROM ((SELECT name, value, emails FROM tag_counts
                  WHERE org_id = $1 AND emails > 0 AND (name, value) > ($2, $3) ORDER BY name, value LIMIT $4)
                 UNION ALL
                 SELECT name, value, emails FROM tag_additions WHERE org_id = $1 AND (name, value) > ($2, $3)) AS part
           GROUP BY name, value ORDER BY name, value LIMIT $4`,
    values: [orgId, after?.name ?? '', after?.value ?? '', limit],
  });
}

/** The result of registering tags. */
export interface TagRegistration {
  /** Distinct tags that the organization had before, up to the limit. */
  registered: number;
  /** Distinct tags of this call that it did not have. They are registered only if the limit allows all of them. */
  added: number;
}

/**
 * Registers the tags that an organization does not have yet, if it then has at most `limit` distinct ones; otherwise none.
 * The caller makes sure that no other transaction registers tags of the organization meanwhile (`lockLimit`).
 */
export async function registerTags(
  db: Db,
  orgId: string,
  tags: readonly Tag[],
  limit: number,
): Promise<TagRegistration> {
  return queryOneRow(db, {
    name: 'register_tags',
    // Tags are inserted in the same order here and in aggregate_tags, so that the two cannot deadlock.
    text: `WITH wanted AS (
             SELECT DISTINCT name, value FROM unnest($2::text[], $3::text[]) AS tag(name, value)
           ), added AS MATERIALIZED (
             SELECT name, value FROM wanted
             WHERE (SELECT emails FROM tag_counts AS known
                    WHERE known.org_id = $1 AND known.name = wanted.name AND known.value = wanted.value) IS NULL
           ), totals AS MATERIALIZED (
             SELECT (SELECT count(*) FROM (SELECT FROM tag_counts WHERE org_id = $1 LIMIT $4) AS known)::int AS registered,
                    (SELECT count(*) FROM added)::int AS added
           ), inserted AS (
             INSERT INTO tag_counts (org_id, name, value, emails)
             SELECT $1, name, value, 0 FROM added CROSS JOIN totals
             WHERE totals.registered + totals.added <= $4 ORDER BY name, value
             ON CONFLICT DO NOTHING
           )
           SELECT registered, added FROM totals`,
    values: [orgId, ...columns(tags, 'name', 'value'), limit],
  });
}

/** The advisory lock of this aggregation: one process at a time. */
const AGGREGATION_LOCK_ID = 4_418_093_672;

/** Keeps additions from being aggregated until the end of the caller's transaction, which changes tag_counts in another order. */
export async function lockAggregation(db: Db): Promise<void> {
  await execute(db, `SELECT pg_advisory_xact_lock($1)`, [AGGREGATION_LOCK_ID]);
}

/**
 * Moves the oldest additions into tag_counts, in one statement, so that readers of both count each email once. Does nothing
 * while another process does it.
 * @returns how many it took, at most `limit`
 */
export async function aggregateTags(db: Db, limit: number): Promise<number> {
  return queryOneValue(db, {
    name: 'aggregate_tags',
    text: `WITH taken AS (
             DELETE FROM tag_additions
             WHERE id = ANY (ARRAY(SELECT id FROM tag_additions WHERE (SELECT pg_try_advisory_xact_lock($2)) ORDER BY id LIMIT $1))
             RETURNING org_id, name, value, emails
           ), aggregated AS (
             INSERT INTO tag_counts AS total (org_id, name, value, emails)
             SELECT org_id, name, value, sum(emails) FROM taken GROUP BY org_id, name, value ORDER BY org_id, name, value
             ON CONFLICT (org_id, name, value) DO UPDATE SET emails = total.emails + excluded.emails
           )
           SELECT count(*)::int AS taken FROM taken`,
    values: [limit, AGGREGATION_LOCK_ID],
  });
}
