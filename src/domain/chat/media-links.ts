import type { SecretKeys } from '../../lib/secret-key.ts';
import { makeSigner } from '../../lib/signer.ts';

/** Makes and verifies signed links to files of users' messages. They work without an API key until they expire. */
export function makeMediaLinks(secretKey: SecretKeys) {
  const signer = makeSigner(secretKey, 'media links');
  return {
    /** Returns the path and query of a link. @param expires Unix seconds */
    make(id: string, expires: number): string {
      const signature = signer.sign(JSON.stringify([id, String(expires)]));
      return `/v1/chatapp/received/${id}/download?${new URLSearchParams({ expires: String(expires), signature }).toString()}`;
    },
    /** Returns whether a link is ours, expired or not. */
    verify: (id: string, expires: string, signature: string): boolean =>
      signer.verify(JSON.stringify([id, expires]), signature),
  };
}
