import { deriveKeys, type SecretKeys } from '../../lib/secret-key.ts';
import { makeSigner } from '../../lib/signer.ts';

/** Bytes of a signature: enough against guessing, and short enough for a provider's metadata. */
const BYTES = 16;

/**
 * Signs the email ids that go out in a provider's metadata and come back in its callbacks. Ids are public, they are part
 * of every Message-ID: the signature shows that we put the id there, and not somebody else who uses the same account.
 */
export interface MetadataSigner {
  /** @returns base64url */
  readonly sign: (emailId: string) => string;
  readonly verify: (emailId: string, signature: string) => boolean;
}

export function makeMetadataSigner(secretKeys: SecretKeys): MetadataSigner {
  const signer = makeSigner(deriveKeys(secretKeys, 'provider metadata'), BYTES);
  return {
    sign: (emailId) => signer.sign(emailId).toString('base64url'),
    verify: (emailId, signature) => signer.verify(emailId, Buffer.from(signature, 'base64url')),
  };
}
