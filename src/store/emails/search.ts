import { groupBy } from '../../lib/group.ts';
import { wantedTerms } from '../../domain/email/search.ts';
import type { Cursor } from '../postgres/page.ts';
import { type Db, queryRow, queryRows } from '../postgres/pool.ts';
import {
  type Conditions,
  type EmailSummary,
  FITS,
  SUMMARY,
  valuesOf,
  type Walk,
  type WalkedRow,
  type Walker,
  walkOf,
  WITHIN,
} from './summary.ts';
import { termKey } from './search-index.ts';
import { scan } from './walks.ts';

/** The blocks that each round of a page reads; the first round suffices for rare terms. */
const BLOCKS_PER_ROUND = [100, 300] as const;
/** Limits the emails that a page reads, and the blocks whose members it looks up by their number. */
const MAX_ROWS = 400;
const MAX_NUMBERED_BLOCKS = 30;

/** The part of an organization's emails that is indexed: a range in the order of lists, newest first. */
interface IndexedRange {
  readonly newest: Cursor;
  /** The oldest indexed email; null if none is older. */
  readonly oldest: Cursor | null;
}

/** The emails of a block that have a term: their ids if they are few, otherwise a bit for each email, oldest first. */
interface Posting {
  readonly created_at: string;
  readonly email_id: string;
  readonly email_ids: string[] | null;
  readonly bits: Buffer | null;
}

/**
 * Finds emails by a search, newest first: the indexed ones by the index, the others by reading them. It reads a bounded number of
 * rows; the page may then be shorter.
 */
export function bySearchIndex(db: Db, conditions: Conditions): Walker {
  return async (after, want) => {
    const range = await readIndexedRange(db, conditions.orgId);
    if (!range) return scan(db, conditions, null)(after, want);
    const { newest, oldest } = range;
    const found: EmailSummary[] = [];
    if (isAbove(after, newest)) {
      const walk = await scan(db, conditions, newest)(after, want);
      if (walk.next !== null || walk.found.length >= want) return walk;
      found.push(...walk.found);
    }
    if (!oldest || isAbove(after, oldest)) {
      // The index may have grown on both sides since its range was read. Newer emails were scanned above, older ones are below.
      const from = isAbove(after, newest) ? including(newest) : after;
      const walk = await walkIndex(db, conditions, from, oldest, want - found.length);
      found.push(...walk.found);
      if (walk.next !== null || found.length >= want) return { found, next: walk.next };
    }
    if (!oldest) return { found, next: null };
    const walk = await scan(db, conditions, null)(isAbove(after, oldest) ? oldest : after, want - found.length);
    return { found: [...found, ...walk.found], next: walk.next };
  };
}

function isAbove(a: Cursor, b: Cursor): boolean {
  return a.created_at === b.created_at ? a.id > b.id : a.created_at > b.created_at;
}

/** Returns the position just before an email, so that a list continues with that email. No id is a prefix of another. */
function including({ created_at: at, id }: Cursor): Cursor {
  return { created_at: at, id: `${id}~` };
}

async function readIndexedRange(db: Db, orgId: string): Promise<IndexedRange | undefined> {
  const row = await queryRow<{ newest_at: string; newest_id: string; oldest_at: string | null; oldest_id: string }>(
    db,
    {
      name: 'read_indexed_range',
      text: 'SELECT newest_at, newest_id, oldest_at, oldest_id FROM search_ranges WHERE org_id = $1',
      values: [orgId],
    },
  );
  return (
    row && {
      newest: { created_at: row.newest_at, id: row.newest_id },
      oldest: row.oldest_at === null ? null : { created_at: row.oldest_at, id: row.oldest_id },
    }
  );
}

/** Walks the blocks that have all terms, newest first. @param oldest the oldest block, or null */
async function walkIndex(
  db: Db,
  conditions: Conditions,
  after: Cursor,
  oldest: Cursor | null,
  want: number,
): Promise<Walk> {
  const found: EmailSummary[] = [];
  const budget = { rows: MAX_ROWS, blocks: MAX_NUMBERED_BLOCKS };
  let cursor = after;
  for (const limit of BLOCKS_PER_ROUND) {
    const { blocks, next } = await findBlocks(db, conditions, cursor, oldest, limit);
    for (let from = 0; from < blocks.length;) {
      const some = takeBlocks(blocks.slice(from), want - found.length, budget);
      if (some.length === 0) return { found, next: cursor };
      const walk = await readBlocks(db, conditions, some, after, want - found.length);
      found.push(...walk.found);
      if (walk.next !== null || found.length >= want) return { found, next: walk.next };
      from += some.length;
      cursor = positionOf(some.at(-1));
    }
    if (next === null) return { found, next: null };
    cursor = next;
    if (cursor.created_at < conditions.since) return { found, next: null };
  }
  return { found, next: cursor };
}

function positionOf(posting: Posting | undefined): Cursor {
  return { created_at: posting?.created_at ?? '', id: posting?.email_id ?? '' };
}

/** Takes the blocks that the page needs from its budget; at least one if the budget is unused. */
function takeBlocks(blocks: readonly Posting[], want: number, budget: { rows: number; blocks: number }): Posting[] {
  const taken: Posting[] = [];
  let members = 0;
  for (const block of blocks) {
    const size = block.email_ids?.length ?? countBits(block.bits);
    if (members >= want || budget.rows <= 0 || budget.blocks <= 0) break;
    budget.rows -= size;
    if (block.bits) budget.blocks--;
    members += size;
    taken.push(block);
  }
  return taken;
}

function countBits(bits: Buffer | null): number {
  let count = 0;
  for (const byte of bits ?? []) for (let rest = byte; rest > 0; rest &= rest - 1) count++;
  return count;
}

/**
 * Finds the next blocks that have all terms, newest first, with the emails that may have them.
 * @returns `next` is the last block that was read, or null at the end
 */
async function findBlocks(
  db: Db,
  { orgId, search }: Conditions,
  after: Cursor,
  oldest: Cursor | null,
  limit: number,
): Promise<{ readonly blocks: Posting[]; readonly next: Cursor | null }> {
  const terms = wantedTerms(search).map((term) => termKey(orgId, term));
  const postings = await queryRows<Posting & { term: string }>(db, {
    name: 'find_postings',
    text: `SELECT wanted.term, posting.* FROM unnest($1::uuid[]) AS wanted(term) CROSS JOIN LATERAL (
             SELECT created_at, email_id, email_ids, bits FROM email_terms
             WHERE term = wanted.term AND (created_at, email_id) < ($2::timestamptz, $3)
               AND (created_at, email_id) >= ($5::timestamptz, $6)
             ORDER BY created_at DESC, email_id DESC LIMIT $4
           ) AS posting ORDER BY posting.created_at DESC, posting.email_id DESC`,
    values: [terms, after.created_at, after.id, limit, oldest?.created_at ?? '-infinity', oldest?.id ?? ''],
  });
  const lists = terms.map((term) => postings.filter((posting) => posting.term === term));
  // Starts with the rarest term, whose blocks reach back furthest.
  const reach = (list: readonly Posting[]) => (list.length < limit ? '' : (list.at(-1)?.created_at ?? ''));
  const [lead = [], ...others] = lists.toSorted((a, b) =>
    reach(a) < reach(b) ? -1 : reach(a) > reach(b) ? 1 : a.length - b.length,
  );
  const blocks = others.length === 0 || lead.length === 0 ? lead : await haveAll(db, lead, terms);
  return { blocks, next: lead.length < limit ? null : positionOf(lead.at(-1)) };
}

/** Returns the blocks that have all terms. */
async function haveAll(db: Db, blocks: readonly Posting[], terms: readonly string[]): Promise<Posting[]> {
  const rows = await queryRows<Posting>(db, {
    name: 'match_postings',
    text: `SELECT posting.* FROM unnest($1::timestamptz[], $2::text[]) AS block(created_at, email_id) CROSS JOIN LATERAL (
             SELECT created_at, email_id, email_ids, bits FROM email_terms
             WHERE term = ANY ($3) AND created_at = block.created_at AND email_id = block.email_id OFFSET 0
           ) AS posting`,
    values: [blocks.map((block) => block.created_at), blocks.map((block) => block.email_id), terms],
  });
  const byBlock = groupBy(rows, (posting) => posting.email_id);
  return blocks.flatMap((block) => {
    const postings = byBlock.get(block.email_id) ?? [];
    return postings.length < terms.length ? [] : intersect(postings);
  });
}

/** Combines the postings of a block into one with the emails that are in all of them; none if there are no such emails. */
function intersect(postings: readonly Posting[]): Posting[] {
  const [first] = postings;
  if (!first) return [];
  const lists = postings.flatMap(({ email_ids: ids }) => (ids === null ? [] : [ids]));
  if (lists.length > 0) {
    const ids = lists.reduce((some, list) => some.filter((id) => list.includes(id)));
    return ids.length === 0 ? [] : [{ ...first, email_ids: ids, bits: null }];
  }
  const bits = Buffer.from(first.bits ?? []);
  for (const posting of postings) {
    for (let i = 0; i < bits.length; i++) bits[i] = (bits[i] ?? 0) & (posting.bits?.[i] ?? 0);
  }
  return countBits(bits) === 0 ? [] : [{ ...first, bits }];
}

/** Reads the emails of blocks that fit, newest first. */
async function readBlocks(
  db: Db,
  conditions: Conditions,
  blocks: readonly Posting[],
  after: Cursor,
  want: number,
): Promise<Walk> {
  const numbered = blocks.filter(({ bits }) => bits !== null);
  const rows = await queryRows<WalkedRow>(db, {
    name: 'read_blocks',
    text: READ_BLOCKS,
    values: [
      ...valuesOf(conditions, after, want),
      blocks.flatMap(({ email_ids: ids }) => ids ?? []),
      ...[numbered.map((block) => block.created_at), numbered.map((block) => block.email_id)],
      numbered.map(({ bits }) => bits),
    ],
  });
  return walkOf(rows, conditions.search, want);
}

const READ_BLOCKS = `
  WITH candidate AS (
    SELECT unnest($12::text[]) AS id
    UNION ALL
    SELECT member.id FROM unnest($13::timestamptz[], $14::text[], $15::bytea[]) AS block(created_at, email_id, bits)
    CROSS JOIN LATERAL (
      SELECT id, row_number() OVER (ORDER BY created_at, id) - 1 AS n
      FROM (SELECT created_at, id FROM emails
            WHERE org_id = $1 AND (created_at, id) >= (block.created_at, block.email_id)
            ORDER BY created_at, id LIMIT 8 * octet_length(block.bits)) AS member
    ) AS member
    WHERE get_bit(block.bits, member.n) = 1
  )
  SELECT email.*, true AS fits, false AS last
  FROM candidate CROSS JOIN LATERAL (
    SELECT ${SUMMARY} FROM emails AS email
    WHERE id = candidate.id AND org_id = $1 AND ${WITHIN()} AND ${FITS} OFFSET 0
  ) AS email
  ORDER BY email.created_at DESC, email.id DESC LIMIT $5`;
