import type { SecretKeys } from '../lib/secret-key.ts';
import { makeSigner } from '../lib/signer.ts';

/** The lifetime of a link to an attachment, in seconds. */
export const LINK_LIFE_SECONDS = 3_600;

/** Creates and verifies signed links to attachments. A link needs no API key until it expires. */
export const makeDownloadLinks = (secretKey: SecretKeys) =>
  makeFileLinks(
    secretKey,
    'download links',
    (emailId: string, attachmentId: string) => `/v1/emails/${emailId}/attachments/${attachmentId}/download`,
  );

/** Creates and verifies signed links to files of users' messages. A link needs no API key until it expires. */
export const makeMediaLinks = (secretKey: SecretKeys) =>
  makeFileLinks(secretKey, 'media links', (id: string) => `/v1/chatapp/received/${id}/download`);

/** @param pathOf returns the path of the file with these ids, all of which are signed */
function makeFileLinks<Ids extends readonly string[]>(
  secretKey: SecretKeys,
  purpose: 'download links' | 'media links',
  pathOf: (...ids: Ids) => string,
) {
  const signer = makeSigner(secretKey, purpose);
  const signed = (ids: Ids, expires: string) => JSON.stringify([...ids, expires]);
  return {
    /** Returns the path and query of a link. @param expires Unix seconds */
    make(ids: Ids, expires: number): string {
      const signature = signer.sign(signed(ids, String(expires)));
      return `${pathOf(...ids)}?${new URLSearchParams({ expires: String(expires), signature }).toString()}`;
    },
    /** Returns the expiry of a link in Unix seconds, which may have passed; undefined for an invalid link. */
    read(ids: Ids, { expires, signature }: { expires: string; signature: string }): number | undefined {
      return signer.verify(signed(ids, expires), signature) ? Number(expires) : undefined;
    },
  };
}
