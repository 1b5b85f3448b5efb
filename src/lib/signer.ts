import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import { deriveKeys, type KeyPurpose, type SecretKeys } from './secret-key.ts';

export type Signer = ReturnType<typeof makeSigner>;

/** Bytes of a signature in tracking and unsubscribe links, cursors and a provider's metadata: 128 bits are too many to guess, and short. */
export const SHORT_SIGNATURE_BYTES = 16;

/** Signs with the primary key by HMAC-SHA256, truncated to `bytes` (RFC 2104 §5). Verifies signatures of any key. */
export function makeSigner(secretKeys: SecretKeys, purpose: KeyPurpose, bytes = 32) {
  const keys = deriveKeys(secretKeys, purpose);
  const signWith = (key: KeyObject, data: string) => createHmac('sha256', key).update(data).digest().subarray(0, bytes);
  return {
    /** @returns base64url */
    sign: (data: string): string => signWith(keys[0], data).toString('base64url'),
    /** Takes the same time for every signature of the right length and spelling. */
    verify: (data: string, text: string): boolean => {
      const signature = Buffer.from(text, 'base64url');
      // Decoding ignores spare bits and other characters: only the spelling that was issued is accepted.
      if (signature.length !== bytes || signature.toString('base64url') !== text) return false;
      // Try every key, so that timing does not reveal which one has signed.
      return keys.map((key) => timingSafeEqual(signWith(key, data), signature)).includes(true);
    },
  };
}
