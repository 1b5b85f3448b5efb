/** The place of a row in a list that is ordered by (created_at, id) descending. */
export interface Position {
  /** UTC with milliseconds. */
  readonly created_at: string;
  readonly id: string;
}

/**
 * Removes the row that exceeds a page.
 * @param rows at most `limit` + 1 rows in the list's order
 * @returns `next` is the last row of the page if more rows follow
 */
export function cutPage<Row extends Position>(
  rows: readonly Row[],
  limit: number,
): { readonly rows: readonly Row[]; readonly next: Position | null } {
  const page = rows.slice(0, limit);
  return { rows: page, next: (rows.length > limit && page.at(-1)) || null };
}

export function encodePosition({ created_at, id }: Position): string {
  return JSON.stringify([created_at, id]);
}

/** @param text the result of `encodePosition` */
export function decodePosition(text: string): Position {
  const [created_at, id] = JSON.parse(text) as [string, string];
  return { created_at, id };
}
