import type { QueryResultRow } from 'pg';
import { type Db, queryRows } from './pool.ts';

/** The last row of the previous page of a list that is sorted by (created_at, id), latest first. */
export interface Cursor {
  readonly created_at: string;
  readonly id: string;
}

/** Before the first row of a list. */
export const START: Cursor = { created_at: 'infinity', id: '' };

/** Returns the values that (created_at, id) of the next rows are compared with. */
export function cursorValues(after: Cursor | null): [createdAt: string, id: string] {
  const { created_at: createdAt, id } = after ?? START;
  return [createdAt, id];
}

/**
 * Returns a function that lists rows of an organization, latest first.
 * @param fields SQL of the fields of a row
 */
export function latestOf<Row extends QueryResultRow>(
  table: string,
  fields: string,
): (db: Db, orgId: string, after: Cursor | null, limit: number) => Promise<Row[]> {
  const text = `SELECT ${fields} FROM ${table} WHERE org_id = $1 AND (created_at, id) < ($2::timestamptz, $3)
                ORDER BY created_at DESC, id DESC LIMIT $4`;
  return (db, orgId, after, limit) => queryRows(db, text, [orgId, ...cursorValues(after), limit]);
}

/** A page of a list. */
export interface Page<Row> {
  readonly rows: readonly Row[];
  /** The cursor of the next page, or null after the last one. */
  readonly next: Cursor | null;
}

/**
 * Removes the row that exceeds a page.
 * @param rows at most `limit` + 1 rows in the list's order
 */
export function cutPage<Row extends Cursor>(rows: readonly Row[], limit: number): Page<Row> {
  const page = rows.slice(0, limit);
  return { rows: page, next: (rows.length > limit && page.at(-1)) || null };
}

/** A row of a list whose statement reads a bounded number of rows. */
export interface ReadRow {
  /** False for a row that is listed only because it is the last one; NULL too, if it lacks a value that a filter compares. */
  readonly is_match?: boolean | null;
  /** True for the last row that the statement may read. The next page continues after it. */
  readonly is_last?: boolean;
}

/** Like `cutPage`, for a statement that may have reached its bound before it has found a whole page. */
export function cutReadPage<Row extends Cursor & ReadRow>(read: readonly Row[], limit: number): Page<Row> {
  const page = cutPage(
    read.filter(({ is_match: isMatch = true }) => isMatch),
    limit,
  );
  const last = read.at(-1);
  return { ...page, next: page.next ?? (last?.is_last ? last : null) };
}

export function encodeCursor({ created_at, id }: Cursor): string {
  return JSON.stringify([created_at, id]);
}

/** @param text the result of `encodeCursor` */
export function decodeCursor(text: string): Cursor {
  const [created_at, id] = JSON.parse(text) as [string, string];
  return { created_at, id };
}

const ROWS_PER_PAGE = 1_000;

/** Reads all rows of a list page by page. */
export async function readAll<Row>(
  page: (after: Row | null, limit: number) => Promise<readonly Row[]>,
): Promise<Row[]> {
  const all: Row[] = [];
  for (;;) {
    const rows = await page(all.at(-1) ?? null, ROWS_PER_PAGE);
    all.push(...rows);
    if (rows.length < ROWS_PER_PAGE) return all;
  }
}
