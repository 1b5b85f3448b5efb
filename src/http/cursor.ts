import { ServiceError } from '../domain/errors.ts';
import { decodeCursor, encodeCursor, type Cursor } from '../store/postgres/page.ts';
import type { SecretKeys } from '../lib/secret-key.ts';
import { makeSigner, SHORT_SIGNATURE_BYTES } from '../lib/signer.ts';

/** Identifies the list that a cursor is valid for. */
export interface Listing {
  readonly list: string;
  readonly orgId: string;
  /** All parameters that select the rows. Equivalent filters must result in the same JSON. */
  readonly filters: Readonly<Record<string, unknown>>;
}

/**
 * Creates cursors that callers cannot forge: base64url of a signature and the signed position.
 * @param secretKey the settings `SECRET_KEY` and `SECRET_KEY_OLD`
 */
export function makeCursors(secretKey: SecretKeys) {
  const signer = makeSigner(secretKey, 'cursors', SHORT_SIGNATURE_BYTES);
  const signed = ({ list, orgId, filters }: Listing, position: string) =>
    JSON.stringify([list, orgId, filters, position]);

  return {
    /** Returns the cursor for the rows after a position. The result is the same in every process. */
    seal: (listing: Listing, position: Cursor): string => {
      const text = encodeCursor(position);
      const signature = Buffer.from(signer.sign(signed(listing, text)), 'base64url');
      return Buffer.concat([signature, Buffer.from(text)]).toString('base64url');
    },
    /** @throws ServiceError validation_error for a cursor that is malformed, modified or from another list */
    open: (listing: Listing, cursor: string): Cursor => {
      const bytes = Buffer.from(cursor, 'base64url');
      const position = bytes.subarray(SHORT_SIGNATURE_BYTES).toString();
      const signature = bytes.subarray(0, SHORT_SIGNATURE_BYTES).toString('base64url');
      // Decoding ignores spare bits and characters that are not base64url, so only the issued spelling is accepted.
      const isOurs = bytes.length > SHORT_SIGNATURE_BYTES && bytes.toString('base64url') === cursor;
      if (!isOurs || !signer.verify(signed(listing, position), signature)) {
        throw new ServiceError(
          'validation_error',
          'must be the next_cursor of the previous page, given back with the same filters',
          'cursor',
        );
      }
      return decodeCursor(position);
    },
  };
}
