import { ServiceError } from '../domain/errors.ts';
import { deriveKeys, type SecretKeys } from '../lib/secret-key.ts';
import { makeSigner } from '../lib/signer.ts';

/** The last row of a page in a list that is ordered by (created_at, id) descending. */
export interface Position {
  /** UTC with milliseconds. */
  readonly created_at: string;
  readonly id: string;
}

/** The list that a cursor belongs to. A cursor is valid for this list only. */
export interface Listing {
  /** The name of the list, such as `emails`. */
  readonly list: string;
  readonly orgId: string;
  /** All parameters that select the rows, as JSON. Equivalent filters must have the same form. */
  readonly filters: Readonly<Record<string, unknown>>;
}

export interface Cursors {
  /** Returns the cursor that continues after a position. The result is the same in every process. */
  readonly seal: (listing: Listing, position: Position) => string;
  /** @throws ServiceError validation_error for a cursor that is malformed, modified or of another listing */
  readonly open: (listing: Listing, cursor: string) => Position;
}

/** HMAC-SHA256 truncated to 128 bits (RFC 2104 §5). */
const SIGNATURE_BYTES = 16;

/**
 * Creates cursors that callers cannot forge: base64url of a signature and the signed position.
 * @param secretKey the settings `SECRET_KEY` and `SECRET_KEY_OLD`
 */
export function makeCursors(secretKey: SecretKeys): Cursors {
  const signer = makeSigner(deriveKeys(secretKey, 'cursors'), SIGNATURE_BYTES);
  const signed = ({ list, orgId, filters }: Listing, position: string) =>
    JSON.stringify([list, orgId, filters, position]);

  return {
    seal(listing, { created_at, id }) {
      const position = JSON.stringify([created_at, id]);
      return Buffer.concat([signer.sign(signed(listing, position)), Buffer.from(position)]).toString('base64url');
    },
    open(listing, cursor) {
      const bytes = Buffer.from(cursor, 'base64url');
      const position = bytes.subarray(SIGNATURE_BYTES).toString();
      const signature = bytes.subarray(0, SIGNATURE_BYTES);
      // Decoding ignores spare bits and characters that are not base64url: only the issued spelling is accepted.
      const isOurs = bytes.length > SIGNATURE_BYTES && bytes.toString('base64url') === cursor;
      if (!isOurs || !signer.verify(signed(listing, position), signature)) {
        throw new ServiceError(
          'validation_error',
          'must be the next_cursor of the previous page, given back with the same filters',
          'cursor',
        );
      }
      const [created_at, id] = JSON.parse(position) as [string, string];
      return { created_at, id };
    },
  };
}

/** The fields of a list response besides its rows. */
export interface PageEnd {
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

/**
 * Removes the row that exceeds the page, and returns a cursor if there was one.
 * @param rows at most `limit` + 1 rows in the list's order
 */
export function endPage<Row extends Position>(
  cursors: Cursors,
  listing: Listing,
  rows: readonly Row[],
  limit: number,
): PageEnd & { readonly rows: Row[] } {
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const has_more = rows.length > limit;
  return { rows: page, has_more, next_cursor: has_more && last ? cursors.seal(listing, last) : null };
}
