import { deriveKeys, type SecretKeys } from '../../lib/secret-key.ts';
import { makeSigner } from '../../lib/signer.ts';

/** Seconds for which a link is good. */
export const LINK_LIFE_SECONDS = 3_600;

/** Signed links to files that work without an API key until they expire. */
export interface DownloadLinks {
  /**
   * Returns the path and query of a link.
   * @param expires Unix seconds
   */
  readonly make: (emailId: string, attachmentId: string, expires: number) => string;
  /** Returns the expiry of a link in Unix seconds; undefined for an invalid link. */
  readonly read: (emailId: string, attachmentId: string, query: LinkQuery) => number | undefined;
}

interface LinkQuery {
  readonly expires: string;
  readonly signature: string;
}

/** @param secretKey the settings `SECRET_KEY` and `SECRET_KEY_OLD` */
export function makeDownloadLinks(secretKey: SecretKeys): DownloadLinks {
  const signer = makeSigner(deriveKeys(secretKey, 'download links'));

  return {
    make(emailId, attachmentId, expires) {
      const signature = signer.sign(JSON.stringify([emailId, attachmentId, String(expires)]));
      const query = new URLSearchParams({ expires: String(expires), signature: signature.toString('base64url') });
      return `/v1/emails/${emailId}/attachments/${attachmentId}/download?${query.toString()}`;
    },
    read(emailId, attachmentId, { expires, signature }) {
      const bytes = Buffer.from(signature, 'base64url');
      // Decoding drops what is not base64url and spare bits: only the spelling that was issued is accepted.
      const isCanonical = bytes.toString('base64url') === signature;
      const isOurs = signer.verify(JSON.stringify([emailId, attachmentId, expires]), bytes);
      return isCanonical && isOurs ? Number(expires) : undefined;
    },
  };
}
