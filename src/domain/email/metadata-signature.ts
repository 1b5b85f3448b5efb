import type { SecretKeys } from '../../lib/secret-key.ts';
import { makeSigner, type Signer } from '../../lib/signer.ts';

/** Too long to guess, and short enough for a provider's metadata. */
const SIGNATURE_BYTES = 16;

/**
 * Signs the email ids in a provider's metadata, which its callbacks contain. Ids are public, as part of every Message-ID:
 * the signature proves that we set the metadata, not another user of the same account.
 */
export function makeMetadataSigner(secretKeys: SecretKeys): Signer {
  return makeSigner(secretKeys, 'provider metadata', SIGNATURE_BYTES);
}
