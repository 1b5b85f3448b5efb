import { ServiceError } from '../domain/errors.ts';
import { decodeCursor, encodeCursor, type Cursor } from '../store/postgres/page.ts';

/** The maximum number of rows on one page of a list. */
export const ROWS_PER_PAGE = 50;

const ENCODED = /^\["\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","\w{1,64}"\]$/;

/** Encodes a position as a query parameter. It is not signed: at any position, a list contains only rows of its organization. */
export function cursorToText(position: Cursor): string {
  return Buffer.from(encodeCursor(position)).toString('base64url');
}

/** @throws ServiceError validation_error for text that cursorToText has not returned */
export function parseCursor(text: string | undefined): Cursor | null {
  if (text === undefined) return null;
  const encoded = Buffer.from(text, 'base64url').toString();
  if (ENCODED.test(encoded)) return decodeCursor(encoded);
  throw new ServiceError('validation_error', 'this link is broken; begin with the first page', 'cursor');
}
