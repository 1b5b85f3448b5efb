import { hash } from 'node:crypto';
import { type Searchable, termsOf } from '../../domain/email/search.ts';
import { type Cursor } from '../postgres/page.ts';
import { type Db, execute, queryColumn, queryOneValue, queryRow, queryRows } from '../postgres/pool.ts';

/** A term that more emails of a block have is stored as a bit for each email of the block instead of as ids. */
const MAX_IDS_PER_TERM = 16;

/** The key of an organization's term in the index: a hash in the form of a UUID. */
export function termKey(orgId: string, term: string): string {
  return hash('sha256', `${orgId}:${term}`).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5');
}

/**
 * Returns the time before which all accepted emails are committed. The acceptance of an email takes the time at which its
 * transaction began, so no transaction may be open that began earlier. A transaction that has written nothing in its first ten
 * minutes is ignored: it is a backup or a query. Without `track_activities` the server does not list its transactions.
 * @param settledMs subtracted from that time, as a margin for steps of the clock and for the time between the start of a
 * transaction and its entry in pg_stat_activity
 */
export async function readSettledTime(db: Db, settledMs: number): Promise<string> {
  return queryOneValue(db, {
    name: 'read_settled_time',
    text: `SELECT least(now(), min(xact_start)) - $1 * interval '1 ms'
                  - CASE current_setting('track_activities') WHEN 'on' THEN interval '0' ELSE interval '10 minutes' END
                  AS settled_at
           FROM pg_stat_activity
           WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
             AND (backend_xid IS NOT NULL OR xact_start > now() - interval '10 minutes')`,
    values: [settledMs],
  });
}

/** Starts the index of organizations that have none, with emails from `settledAt` on; older ones follow backwards. */
export async function addSearchRanges(db: Db, settledAt: string): Promise<void> {
  await execute(db, {
    name: 'add_search_ranges',
    text: `INSERT INTO search_ranges (org_id, newest_at, newest_id, oldest_at, oldest_id)
           SELECT id, $1, '', $1, '' FROM organizations
           WHERE NOT EXISTS (SELECT FROM search_ranges WHERE org_id = organizations.id) ON CONFLICT DO NOTHING`,
    values: [settledAt],
  });
}

/**
 * Organizations with emails to index: a whole block of new ones, or older ones.
 * @param settledAt the result of `readSettledTime`
 */
export function findUnindexed(db: Db, settledAt: string, blockSize: number): Promise<string[]> {
  return queryColumn(db, {
    name: 'find_unindexed',
    // The time in an id is at most a little before its email's created_at, so earlier partitions are not read.
    text: `SELECT org_id FROM search_ranges AS range CROSS JOIN LATERAL (
             SELECT FROM emails
             WHERE org_id = range.org_id AND (created_at, id) > (range.newest_at, range.newest_id) AND created_at < $1
               AND id > email_id_at(range.newest_at - interval '1 day')
             ORDER BY created_at, id OFFSET $2 - 1 LIMIT 1
           ) AS last_of_block
           UNION SELECT org_id FROM search_ranges WHERE oldest_at IS NOT NULL`,
    values: [settledAt, blockSize],
  });
}

interface SearchRange {
  readonly newest_at: string;
  readonly newest_id: string;
  readonly oldest_at: string | null;
  readonly oldest_id: string;
}

/** Locks the range of an organization until the end of the transaction; undefined while another process indexes it. */
export function lockSearchRange(db: Db, orgId: string): Promise<SearchRange | undefined> {
  return queryRow(db, {
    name: 'lock_search_range',
    text: `SELECT newest_at, newest_id, oldest_at, oldest_id FROM search_ranges WHERE org_id = $1 FOR UPDATE SKIP LOCKED`,
    values: [orgId],
  });
}

/** An email to index, with the partition that holds it. */
export interface UnindexedEmail extends Searchable, Cursor {
  readonly partition: number;
}

const UNINDEXED = `id, created_at, "from", "to", cc, bcc, subject, tableoid::bigint::float8 AS partition`;

/** The emails of an organization after one, oldest first. */
export function readAfter(
  db: Db,
  orgId: string,
  after: Cursor,
  settledAt: string,
  limit: number,
): Promise<UnindexedEmail[]> {
  return queryRows(db, {
    name: 'read_unindexed_after',
    text: `SELECT ${UNINDEXED} FROM emails
           WHERE org_id = $1 AND (created_at, id) > ($2::timestamptz, $3) AND created_at < $4 ORDER BY created_at, id LIMIT $5`,
    values: [orgId, after.created_at, after.id, settledAt, limit],
  });
}

/** The emails of an organization before one, newest first. */
export function readBefore(db: Db, orgId: string, before: Cursor, limit: number): Promise<UnindexedEmail[]> {
  return queryRows(db, {
    name: 'read_unindexed_before',
    text: `SELECT ${UNINDEXED} FROM emails
           WHERE org_id = $1 AND (created_at, id) < ($2::timestamptz, $3) ORDER BY created_at DESC, id DESC LIMIT $4`,
    values: [orgId, before.created_at, before.id, limit],
  });
}

/** Stores the terms of a block. @param emails all of one partition, oldest first */
export async function insertTerms(db: Db, orgId: string, emails: readonly UnindexedEmail[]): Promise<void> {
  const members = new Map<string, number[]>();
  for (const [n, email] of emails.entries()) {
    for (const term of termsOf(email)) {
      const list = members.get(term);
      if (list) list.push(n);
      else members.set(term, [n]);
    }
  }
  const postings = [...members].map(([term, numbers]) => ({ key: termKey(orgId, term), numbers }));
  // In the order of the index, whose pages are then changed one after the other.
  postings.sort((a, b) => (a.key < b.key ? -1 : 1));
  const isFew = (numbers: readonly number[]) => numbers.length <= MAX_IDS_PER_TERM;
  await execute(db, {
    name: 'insert_terms',
    text: `INSERT INTO email_terms (term, created_at, email_id, email_ids, bits)
           SELECT term, $1, $2, string_to_array(ids, ','), bits
           FROM unnest($3::uuid[], $4::text[], $5::bytea[]) AS posting(term, ids, bits)`,
    values: [
      ...[emails[0]?.created_at, emails[0]?.id, postings.map(({ key }) => key)],
      postings.map(({ numbers }) => (isFew(numbers) ? numbers.map((n) => emails[n]?.id).join() : null)),
      postings.map(({ numbers }) => (isFew(numbers) ? null : toBits(numbers, emails.length))),
    ],
  });
}

function toBits(numbers: readonly number[], length: number): Buffer {
  const bits = Buffer.alloc(Math.ceil(length / 8));
  for (const n of numbers) bits[n >> 3] = (bits[n >> 3] ?? 0) | (1 << (n & 7));
  return bits;
}

/** Records that the emails up to this one are indexed. */
export async function recordNewest(db: Db, orgId: string, { created_at: at, id }: Cursor): Promise<void> {
  await execute(db, `UPDATE search_ranges SET newest_at = $2, newest_id = $3 WHERE org_id = $1`, [orgId, at, id]);
}

/** Records that the emails from this one on are indexed; null when no older ones are left. */
export async function recordOldest(db: Db, orgId: string, oldest: Cursor | null): Promise<void> {
  const { created_at: at, id } = oldest ?? { created_at: null, id: '' };
  await execute(db, `UPDATE search_ranges SET oldest_at = $2, oldest_id = $3 WHERE org_id = $1`, [orgId, at, id]);
}

/**
 * Moves the entries of a term to other terms, at most `limit` blocks. Locks the organization's range, so that no block is indexed
 * during the move from emails that were read before it.
 * @returns the number of blocks moved
 */
export async function moveTerm(
  db: Db,
  orgId: string,
  from: string,
  to: readonly string[],
  limit: number,
): Promise<number> {
  await execute(db, `SELECT FROM search_ranges WHERE org_id = $1 FOR UPDATE`, [orgId]);
  return queryOneValue(
    db,
    // A block has the other term already if the address was erased before. Emails that have one of its forms may be missed.
    `WITH moved AS (
       DELETE FROM email_terms WHERE (term, created_at, email_id) IN (
         SELECT term, created_at, email_id FROM email_terms WHERE term = $1 ORDER BY created_at, email_id LIMIT $3)
       RETURNING created_at, email_id, email_ids, bits
     ), added AS (
       INSERT INTO email_terms AS former (term, created_at, email_id, email_ids, bits)
       SELECT term, moved.* FROM moved CROSS JOIN unnest($2::uuid[]) AS term
       ON CONFLICT (term, created_at, email_id) DO UPDATE
       SET bits = coalesce(former.bits, excluded.bits),
           email_ids = CASE WHEN coalesce(former.bits, excluded.bits) IS NULL THEN former.email_ids || excluded.email_ids END
     )
     SELECT count(*)::int AS moved FROM moved`,
    [termKey(orgId, from), to.map((term) => termKey(orgId, term)), limit],
  );
}
