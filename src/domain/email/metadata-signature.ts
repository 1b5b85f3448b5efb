import type { SecretKeys } from '../../lib/secret-key.ts';
import { makeSigner, SHORT_SIGNATURE_BYTES, type Signer } from '../../lib/signer.ts';

/**
 * Creates the signer of email ids in a provider's metadata, which its callbacks contain. Ids are public, since they are part
 * of every Message-ID; the signature proves that we, and not another user of the account, set the metadata.
 */
export function makeMetadataSigner(secretKeys: SecretKeys): Signer {
  return makeSigner(secretKeys, 'provider metadata', SHORT_SIGNATURE_BYTES);
}
