import type { BounceReason, EmailStatus, Tag } from '../../domain/email/email.ts';
import { type Cursor, cursorValues, START } from '../postgres/page.ts';
import type { Db } from '../postgres/pool.ts';

/** One email as lists show it. */
export interface EmailSummary {
  id: string;
  batch_id: string | null;
  from: string;
  to: string[];
  subject: string;
  marketing: boolean;
  tags: Tag[];
  status: EmailStatus;
  error: string | null;
  bounce_reason: BounceReason | null;
  created_at: string;
  scheduled_at: string | null;
  last_event_at: string;
}

/** What a listed email must have, all of it. */
export interface EmailFilters {
  readonly tags: readonly Tag[];
  readonly status: EmailStatus | null;
  readonly batch_id: string | null;
}

export interface EmailPage {
  readonly emails: EmailSummary[];
  /** Where to go on, or null when nothing is left. */
  readonly next: Cursor | null;
}

/** One statement's part of a page. */
interface Walk {
  readonly found: EmailSummary[];
  /** How far it looked; null when it came to the list's end. */
  readonly next: Cursor | null;
}
type Walker = (after: Cursor, want: number) => Promise<Walk>;

/**
 * How many entries of an index one statement looks at, and how many rows of emails it reads for them: what it costs never
 * depends on how many emails there are. Filters of which each fits many emails, and all together hardly any, therefore
 * give pages that are not full.
 */
const ENTRIES = 50_000;
const ROWS = 1_000;

/**
 * A page of an organization's emails, newest first, that have all that the filters ask for.
 * @param after where the previous page ended, or null
 * @param limit most emails of the page; it may hold fewer, even none, while `next` leads on
 */
export async function listEmails(
  db: Db,
  orgId: string,
  filters: EmailFilters,
  after: Cursor | null,
  limit: number,
): Promise<EmailPage> {
  if (contradicts(filters.tags)) return { emails: [], next: null };
  const emails: EmailSummary[] = [];
  let cursor: Cursor | null = after ?? START;
  for (const walk of walkers(db, orgId, filters)) {
    const { found, next } = await walk(cursor, limit + 1 - emails.length);
    emails.push(...found);
    if (emails.length > limit) return { emails: emails.slice(0, limit), next: emails[limit - 1] ?? null };
    cursor = next;
    if (!cursor) break;
  }
  return { emails, next: cursor };
}

/** Tag names are unique within an email, so nothing has one name with two values. */
function contradicts(tags: readonly Tag[]): boolean {
  return new Set(tags.map(({ name }) => name)).size < new Set(tags.map(({ name, value }) => `${name}:${value}`)).size;
}

/** Which indexes to walk, one after the other, each going on where the one before gave up. */
function walkers(db: Db, orgId: string, { tags, status, batch_id }: EmailFilters): Walker[] {
  if (batch_id !== null) return [ofBatch(db, orgId, batch_id, tags, status)];
  if (tags.length === 0) return [status === null ? newest(db, orgId) : byStatus(db, orgId, tags, status)];
  if (status === null) return [byTag(db, orgId, tags, null)];
  // A rare tag or a frequent status is found through the tag's emails, and a rare status through its own.
  return [byTag(db, orgId, tags, status), byStatus(db, orgId, tags, status)];
}

const SUMMARY = `email.id, email.batch_id, email."from", email."to", email.subject, email.marketing, email.tags, email.status,
  email.error, email.bounce_reason, email.created_at, email.scheduled_at, email.last_event_at`;

function newest(db: Db, orgId: string): Walker {
  return async (after, want) => {
    const { rows } = await db.query<EmailSummary>({
      name: 'list_newest',
      text: `SELECT ${SUMMARY} FROM emails AS email
             WHERE org_id = $1 AND (created_at, id) < ($2, $3) ORDER BY created_at DESC, id DESC LIMIT $4`,
      values: [orgId, ...cursorValues(after), want],
    });
    return { found: rows, next: null };
  };
}

/**
 * A batch is small enough to read all of it. CASE keeps the planner from guessing that few of its emails fit, and from
 * reading and sorting all of them for that reason.
 */
function ofBatch(db: Db, orgId: string, batchId: string, tags: readonly Tag[], status: EmailStatus | null): Walker {
  return async (after, want) => {
    const { rows } = await db.query<EmailSummary>({
      name: 'list_batch',
      text: `SELECT ${SUMMARY} FROM emails AS email
             WHERE batch_id = $1 AND (created_at, id) < ($2, $3)
               AND CASE WHEN org_id = $4 AND tags @> $5 THEN $6::text IS NULL OR status = $6 END
             ORDER BY created_at DESC, id DESC LIMIT $7`,
      values: [batchId, ...cursorValues(after), orgId, JSON.stringify(tags), status, want],
    });
    return { found: rows, next: null };
  };
}

function byTag(db: Db, orgId: string, tags: readonly Tag[], status: EmailStatus | null): Walker {
  return walkIndex(db, 'list_by_tag', BY_TAG, orgId, tags, status);
}

function byStatus(db: Db, orgId: string, tags: readonly Tag[], status: EmailStatus): Walker {
  return walkIndex(db, 'list_by_status', BY_STATUS, orgId, tags, status);
}

function walkIndex(
  db: Db,
  name: string,
  text: string,
  orgId: string,
  tags: readonly Tag[],
  status: EmailStatus | null,
): Walker {
  const [names, values] = [tags.map((tag) => tag.name), tags.map((tag) => tag.value)];
  return async (after, want) => {
    const { rows } = await db.query<EmailSummary & { fits: boolean; last: boolean }>({
      name,
      text,
      values: [orgId, names, values, ...cursorValues(after), JSON.stringify(tags), status, ENTRIES, ROWS, want],
    });
    const found: EmailSummary[] = [];
    let next: Cursor | null = null;
    for (const { fits, last, ...email } of rows) {
      if (fits) found.push(email);
      if (last) next = email;
    }
    return { found, next };
  };
}

/**
 * Of the entries of an index (created_at, id, tag_bits), newest first, the rows of those that have the bits of all tags
 * are read until enough fit. The `last` one, entry number `$8` or row number `$9`, is given in any case: from there on
 * another statement may go on. `wanted` are the tags, each with the number of its emails a second ago.
 */
const walking = (entries: string): string => `
  WITH wanted AS MATERIALIZED (
    SELECT tag_key($1, input.name, input.value) AS tag,
           (SELECT emails FROM tag_counts WHERE org_id = $1 AND name = input.name AND value = input.value) AS emails
    FROM unnest($2::text[], $3::text[]) AS input(name, value)
  ), entry AS (
    SELECT created_at, id, tag_bits, row_number() OVER (ORDER BY created_at DESC, id DESC) AS n
    FROM (${entries} ORDER BY created_at DESC, id DESC LIMIT $8) AS entry
  ), candidate AS (
    SELECT created_at, id, n = $8 OR row_number() OVER (ORDER BY created_at DESC, id DESC) = $9 AS last
    FROM entry
    WHERE n = $8 OR (SELECT coalesce(bit_or(tag_bits(tag)), 0) FROM wanted) & ~tag_bits = 0
    ORDER BY created_at DESC, id DESC LIMIT $9
  )
  SELECT email.*, candidate.last
  FROM candidate CROSS JOIN LATERAL (
    SELECT ${SUMMARY}, email.tags @> $6 AND ($7::text IS NULL OR email.status = $7) AS fits
    FROM emails AS email WHERE email.id = candidate.id OFFSET 0
  ) AS email
  WHERE candidate.last OR email.fits
  ORDER BY candidate.created_at DESC, candidate.id DESC LIMIT $10`;

/** The rarest tag's entries are the fewest. One that has not been counted yet is rare. */
const BY_TAG = walking(`
  SELECT created_at, email_id AS id, tag_bits FROM email_tags
  WHERE tag = (SELECT tag FROM wanted ORDER BY emails NULLS FIRST LIMIT 1) AND (created_at, email_id) < ($4, $5)`);

const BY_STATUS = walking(`
  SELECT created_at, id, tag_bits FROM emails
  WHERE org_id = $1 AND status = $7 AND (created_at, id) < ($4, $5)`);
