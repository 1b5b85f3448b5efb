import type { SecretKeys } from '../../lib/secret-key.ts';
import { makeSigner } from '../../lib/signer.ts';

/** The lifetime of a link in seconds. */
export const LINK_LIFE_SECONDS = 3_600;

/** Creates and verifies signed links to files. A link needs no API key until it expires. */
export function makeDownloadLinks(secretKey: SecretKeys) {
  const signer = makeSigner(secretKey, 'download links');
  const signed = (emailId: string, attachmentId: string, expires: string) =>
    JSON.stringify([emailId, attachmentId, expires]);
  return {
    /** Returns the path and query of a link. @param expires Unix seconds */
    make(emailId: string, attachmentId: string, expires: number): string {
      const signature = signer.sign(signed(emailId, attachmentId, String(expires)));
      const query = new URLSearchParams({ expires: String(expires), signature });
      return `/v1/emails/${emailId}/attachments/${attachmentId}/download?${query.toString()}`;
    },
    /** Returns the expiry of a link in Unix seconds; undefined for an invalid link. */
    read(emailId: string, attachmentId: string, query: { expires: string; signature: string }): number | undefined {
      const { expires, signature } = query;
      return signer.verify(signed(emailId, attachmentId, expires), signature) ? Number(expires) : undefined;
    },
  };
}
