import { ServiceError } from '../domain/errors.ts';
import { decodeCursor, encodeCursor, type Cursor } from '../store/postgres/page.ts';

const ENCODED = /^\["\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","\w{1,64}"\]$/;

/** The query parameter of a position. It is not signed: a list contains rows of one organization wherever it starts. */
export function placeToText(position: Cursor): string {
  return Buffer.from(encodeCursor(position)).toString('base64url');
}

/** @throws ServiceError validation_error for a text that placeToText has not made */
export function textToPlace(text: string | undefined): Cursor | null {
  if (text === undefined) return null;
  const encoded = Buffer.from(text, 'base64url').toString();
  if (ENCODED.test(encoded)) return decodeCursor(encoded);
  throw new ServiceError('validation_error', 'this link is broken; begin with the first page', 'cursor');
}
