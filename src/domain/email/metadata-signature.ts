import { deriveKeys, type SecretKeys } from '../../lib/secret-key.ts';
import { makeSigner } from '../../lib/signer.ts';

/** Too long to guess, and short enough for a provider's metadata. */
const SIGNATURE_BYTES = 16;

/**
 * Signs the email ids in a provider's metadata, which its callbacks contain. Ids are public, as part of every Message-ID:
 * the signature proves that we set the metadata, not another user of the same account.
 */
export interface MetadataSigner {
  /** @returns base64url */
  readonly sign: (emailId: string) => string;
  readonly verify: (emailId: string, signature: string) => boolean;
}

export function makeMetadataSigner(secretKeys: SecretKeys): MetadataSigner {
  const signer = makeSigner(deriveKeys(secretKeys, 'provider metadata'), SIGNATURE_BYTES);
  return {
    sign: (emailId) => signer.sign(emailId).toString('base64url'),
    verify: (emailId, signature) => signer.verify(emailId, Buffer.from(signature, 'base64url')),
  };
}
