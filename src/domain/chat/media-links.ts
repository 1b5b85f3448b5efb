import { deriveKeys, type SecretKeys } from '../../lib/secret-key.ts';
import { makeSigner } from '../../lib/signer.ts';

/** Signed links to files of users' messages. They work without an API key until they expire. */
export interface MediaLinks {
  /**
   * Returns the path and query of a link.
   * @param expires Unix seconds
   */
  readonly make: (id: string, expires: number) => string;
  /** Returns whether a link is ours, expired or not. */
  readonly verify: (id: string, expires: string, signature: string) => boolean;
}

/** @param secretKey the settings `SECRET_KEY` and `SECRET_KEY_OLD` */
export function makeMediaLinks(secretKey: SecretKeys): MediaLinks {
  const signer = makeSigner(deriveKeys(secretKey, 'media links'));
  return {
    make(id, expires) {
      const signature = signer.sign(JSON.stringify([id, String(expires)])).toString('base64url');
      return `/v1/chatapp/received/${id}/download?${new URLSearchParams({ expires: String(expires), signature }).toString()}`;
    },
    verify(id, expires, signature) {
      const bytes = Buffer.from(signature, 'base64url');
      // Decoding ignores other characters: only the form that was issued is accepted.
      return bytes.toString('base64url') === signature && signer.verify(JSON.stringify([id, expires]), bytes);
    },
  };
}
