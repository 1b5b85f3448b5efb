import { ServiceError } from '../domain/errors.ts';

/** The place of a row in a list that is ordered by (created_at, id) descending. */
export interface Place {
  /** UTC with milliseconds. */
  readonly created_at: string;
  readonly id: string;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** A place as a query parameter. It is not signed: lists are read by organization, wherever they are begun. */
export function placeToText({ created_at, id }: Place): string {
  return Buffer.from(JSON.stringify([created_at, id])).toString('base64url');
}

/** @throws ServiceError validation_error for a text that placeToText has not made */
export function textToPlace(text: string | undefined): Place | null {
  if (text === undefined) return null;
  try {
    const [created_at, id] = JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[];
    if (typeof created_at === 'string' && TIME.test(created_at) && typeof id === 'string' && /^\w{1,64}$/.test(id)) {
      return { created_at, id };
    }
  } catch {
    // Told below.
  }
  throw new ServiceError('validation_error', 'this link is broken; begin with the first page', 'cursor');
}

/**
 * Cuts off the one row that was read more than a page shows.
 * @param rows at most `limit` + 1, in the list's order
 * @returns the page's rows, and the cursor of the next page if there is one
 */
export function cutPage<Row>(
  rows: readonly Row[],
  limit: number,
  placeOf: (row: Row) => Place,
): { readonly rows: readonly Row[]; readonly next: string | null } {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return { rows: shown, next: rows.length > limit && last ? placeToText(placeOf(last)) : null };
}
