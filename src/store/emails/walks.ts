import type { EmailStatus } from '../../domain/email/email.ts';
import { wantedTerms } from '../../domain/email/search.ts';
import type { Cursor } from '../postgres/page.ts';
import { type Db, queryRows } from '../postgres/pool.ts';
import {
  type Conditions,
  FITS,
  SUMMARY,
  valuesOf,
  type Walk,
  type WalkedRow,
  type Walker,
  walkOf,
  WITHIN,
} from './summary.ts';

/**
 * Limits the index entries that one statement reads, and the emails that it reads for them, so that its cost does not depend on
 * the number of emails. If each filter matches many emails but their combination hardly any, pages are therefore not full.
 */
const MAX_ENTRIES = 10_000;
const MAX_ROWS = 300;
/** The limit of each status if several are merged, because all their entries are read and sorted. */
const MAX_ENTRIES_PER_STATUS = 500;
/** Higher than MAX_ROWS, because reading emails in their own order costs less than looking up each by its id. */
const MAX_SCANNED_ROWS = 3_000;

/** Lists all emails of the organization, newest first. */
export function newest(db: Db, conditions: Conditions): Walker {
  return walker(db, conditions, 'list_newest', LIST_NEWEST, []);
}

const LIST_NEWEST = `SELECT ${SUMMARY}, true AS fits, false AS last FROM emails AS email
  WHERE org_id = $1 AND ${WITHIN()} AND ${FITS} ORDER BY created_at DESC, id DESC LIMIT $5`;

/**
 * Lists the emails of a batch, which have the `created_at` of the batch. A batch is small enough to be read as a whole. Without
 * CASE, the planner would use the index of a frequent status and sort.
 */
export function ofBatch(db: Db, conditions: Conditions, batchId: string): Walker {
  return walker(db, conditions, 'list_batch', LIST_BATCH, [batchId]);
}

const LIST_BATCH = `SELECT ${SUMMARY}, true AS fits, false AS last FROM emails AS email
  WHERE org_id = $1 AND created_at = (SELECT created_at FROM batches WHERE id = $12) AND ${WITHIN()}
    AND CASE WHEN batch_id = $12 THEN ${FITS} END
  ORDER BY created_at DESC, id DESC LIMIT $5`;

/** Lists emails without the search index; reads at most MAX_SCANNED_ROWS. @param until the older end, exclusive; null for none */
export function scan(db: Db, conditions: Conditions, until: Cursor | null): Walker {
  const { created_at: at, id } = until ?? { created_at: '-infinity', id: '' };
  return walker(db, conditions, 'list_scanned', LIST_SCANNED, [at, id, MAX_SCANNED_ROWS]);
}

const LIST_SCANNED = `SELECT ${SUMMARY}, email.fits, email.last
  FROM (
    SELECT email.*, ${FITS} AS fits, row_number() OVER (ORDER BY created_at DESC, id DESC) = $14 AS last
    FROM (SELECT * FROM emails WHERE org_id = $1 AND ${WITHIN()} AND (created_at, id) > ($12, $13)
          ORDER BY created_at DESC, id DESC LIMIT $14) AS email
  ) AS email
  WHERE email.fits OR email.last ORDER BY created_at DESC, id DESC LIMIT $5`;

/** Lists emails with tags, by the entries of the rarest tag. */
export function byTag(db: Db, conditions: Conditions): Walker {
  return walker(db, conditions, 'list_by_tag', BY_TAG, [...tagValues(conditions), MAX_ENTRIES, MAX_ROWS]);
}

/** Lists emails with one of the statuses. */
export function byStatus(db: Db, conditions: Conditions, statuses: readonly EmailStatus[]): Walker {
  const [status, ...others] = statuses;
  if (others.length === 0) {
    return walker(db, conditions, 'list_by_status', BY_STATUS, [
      ...tagValues(conditions),
      MAX_ENTRIES,
      MAX_ROWS,
      status,
    ]);
  }
  const { tags, bounceReason, search } = conditions;
  const fitAll = tags.length === 0 && bounceReason === null && wantedTerms(search).length === 0;
  return async (after, want) => {
    const values = [...tagValues(conditions), fitAll ? want : MAX_ENTRIES_PER_STATUS, MAX_ROWS];
    return walker(db, conditions, 'list_by_statuses', BY_STATUSES, values)(after, want);
  };
}

const tagValues = ({ tags }: Conditions) => [tags.map(({ name }) => name), tags.map(({ value }) => value)];

function walker(db: Db, conditions: Conditions, name: string, text: string, values: readonly unknown[]): Walker {
  return async (after: Cursor, want: number): Promise<Walk> => {
    const rows = await queryRows<WalkedRow>(db, {
      name,
      text,
      values: [...valuesOf(conditions, after, want), ...values],
    });
    return walkOf(rows, conditions.search, want);
  };
}

/**
 * Reads the entries of an index (created_at, id, tag_bits), newest first, and the emails of those that have the bits of all tags,
 * until enough match. It always returns the `last` one, entry number `$14` or row number `$15`, where the next statement
 * continues. `wanted` contains the tags, each with the number of its emails a second ago.
 */
const walking = (entries: string): string => `
  WITH wanted AS MATERIALIZED (
    SELECT tag_key($1, input.name, input.value) AS tag,
           (SELECT emails FROM tag_counts WHERE org_id = $1 AND name = input.name AND value = input.value) AS emails
    FROM unnest($12::text[], $13::text[]) AS input(name, value)
  ), entry AS (
    SELECT created_at, id, tag_bits, row_number() OVER (ORDER BY created_at DESC, id DESC) AS n
    FROM (${entries} ORDER BY created_at DESC, id DESC LIMIT $14) AS entry
  ), candidate AS (
    SELECT created_at, id, n = $14 OR row_number() OVER (ORDER BY created_at DESC, id DESC) = $15 AS last
    FROM entry
    WHERE n = $14 OR (SELECT coalesce(bit_or(tag_bits(tag)), 0) FROM wanted) & ~tag_bits = 0
    ORDER BY created_at DESC, id DESC LIMIT $15
  )
  SELECT email.*, candidate.last
  FROM candidate CROSS JOIN LATERAL (
    SELECT ${SUMMARY}, ${FITS} AS fits
    FROM emails AS email WHERE email.id = candidate.id OFFSET 0
  ) AS email
  WHERE candidate.last OR email.fits
  ORDER BY candidate.created_at DESC, candidate.id DESC LIMIT $5`;

/** A tag that has not been counted yet is rare. */
const BY_TAG = walking(`
  SELECT created_at, email_id AS id, tag_bits FROM email_tags
  WHERE tag = (SELECT tag FROM wanted ORDER BY emails NULLS FIRST LIMIT 1) AND ${WITHIN('email_id')}`);

const BY_STATUS = walking(`
  SELECT created_at, id, tag_bits FROM emails WHERE org_id = $1 AND status = $16 AND ${WITHIN()}`);

const BY_STATUSES = walking(`
  SELECT entry.* FROM unnest($7::text[]) AS wanted_status(status) CROSS JOIN LATERAL (
    SELECT created_at, id, tag_bits FROM emails WHERE org_id = $1 AND status = wanted_status.status AND ${WITHIN()}
    ORDER BY created_at DESC, id DESC LIMIT $14
  ) AS entry`);
