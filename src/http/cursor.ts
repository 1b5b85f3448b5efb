import { ServiceError } from '../domain/errors.ts';
import { deriveKeys, type SecretKeys } from '../lib/secret-key.ts';
import { makeSigner } from '../lib/signer.ts';

/** Where a page ends: the place of a row in a list that is ordered by (created_at, id) descending. */
export interface Position {
  /** UTC with milliseconds. */
  readonly created_at: string;
  readonly id: string;
}

/** What a cursor is bound to: it opens nothing else. */
export interface Listing {
  /** Which list it is, such as `emails`. */
  readonly list: string;
  readonly orgId: string;
  /** Everything that decides which rows are in the list, as JSON. Whoever can write a filter in two ways picks one. */
  readonly filters: Readonly<Record<string, unknown>>;
}

export interface Cursors {
  /** The cursor that leads on from a position. The same position has the same cursor, in every process. */
  readonly seal: (listing: Listing, position: Position) => string;
  /** @throws ServiceError validation_error for a cursor that is broken, changed, or of another listing */
  readonly open: (listing: Listing, cursor: string) => Position;
}

/** Bytes of a signature: HMAC-SHA256 cut to 128 bits (RFC 2104 §5). */
const SIGNATURE = 16;

/**
 * Cursors that anybody can carry and nobody can make up: base64url of a signature and the position it signs.
 * @param secretKey the settings `SECRET_KEY` and `SECRET_KEY_OLD`
 */
export function makeCursors(secretKey: SecretKeys): Cursors {
  const signer = makeSigner(deriveKeys(secretKey, 'cursors'), SIGNATURE);
  const signed = ({ list, orgId, filters }: Listing, position: string) =>
    JSON.stringify([list, orgId, filters, position]);

  return {
    seal(listing, { created_at, id }) {
      const position = JSON.stringify([created_at, id]);
      return Buffer.concat([signer.sign(signed(listing, position)), Buffer.from(position)]).toString('base64url');
    },
    open(listing, cursor) {
      const bytes = Buffer.from(cursor, 'base64url');
      const position = bytes.subarray(SIGNATURE).toString();
      const signature = bytes.subarray(0, SIGNATURE);
      // Decoding drops what is no base64url and spare bits: only the spelling that was given out is taken.
      const isOurs = bytes.length > SIGNATURE && bytes.toString('base64url') === cursor;
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

/** What a list answers besides its rows. */
export interface PageEnd {
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

/**
 * Cuts one row more than a page holds off, and tells where to go on if there was one.
 * @param rows at most `limit` + 1 of them, in the list's order
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
