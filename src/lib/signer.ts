import { createHmac, timingSafeEqual } from 'node:crypto';
import { deriveKeys, type KeyPurpose, type SecretKeys } from './secret-key.ts';

/** Signs with the primary key, and verifies signatures of any key. Signatures are base64url. */
export interface Signer {
  readonly sign: (data: string) => string;
  /** Takes the same time for every signature of the right length. */
  readonly verify: (data: string, signature: string) => boolean;
}

/** HMAC-SHA256, truncated (RFC 2104 §5). */
export function makeSigner(secretKeys: SecretKeys, purpose: KeyPurpose, bytes = 32): Signer {
  const keys = deriveKeys(secretKeys, purpose);
  const signWith = (key: Buffer, data: string) => createHmac('sha256', key).update(data).digest().subarray(0, bytes);
  return {
    sign: (data) => signWith(keys[0], data).toString('base64url'),
    verify(data, text) {
      const signature = Buffer.from(text, 'base64url');
      // Decoding ignores spare bits and other characters: only the spelling that was issued is accepted.
      if (signature.length !== bytes || signature.toString('base64url') !== text) return false;
      // Try every key, so that timing does not reveal which one has signed.
      return keys.map((key) => timingSafeEqual(signWith(key, data), signature)).includes(true);
    },
  };
}
