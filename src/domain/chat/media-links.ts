import type { SecretKeys } from '../../lib/secret-key.ts';
import { makeSigner } from '../../lib/signer.ts';

/** Creates and verifies signed links to files of users' messages. A link needs no API key until it expires. */
export function makeMediaLinks(secretKey: SecretKeys) {
  const signer = makeSigner(secretKey, 'media links');
  return {
    /** Returns the path and query of a link. @param expires Unix seconds */
    make(id: string, expires: number): string {
      const signature = signer.sign(JSON.stringify([id, String(expires)]));
      return `/v1/chatapp/received/${id}/download?${new URLSearchParams({ expires: String(expires), signature }).toString()}`;
    },
    /** Returns true if we signed the link; does not check the expiry. */
    verify: (id: string, expires: string, signature: string): boolean =>
      signer.verify(JSON.stringify([id, expires]), signature),
  };
}
