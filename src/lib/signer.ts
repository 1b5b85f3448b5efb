import { createHmac, timingSafeEqual } from 'node:crypto';
import type { DerivedKeys } from './secret-key.ts';

/** Signs with the primary key, and verifies signatures of any key. */
export interface Signer {
  readonly sign: (data: string) => Buffer;
  /** Takes the same time for every signature of the right length. */
  readonly verify: (data: string, signature: Buffer) => boolean;
}

/**
 * HMAC-SHA256, truncated (RFC 2104 §5).
 * @param keys for this purpose only
 */
export function makeSigner(keys: DerivedKeys, bytes = 32): Signer {
  const signWith = (key: Buffer, data: string) => createHmac('sha256', key).update(data).digest().subarray(0, bytes);
  return {
    sign: (data) => signWith(keys[0], data),
    verify(data, signature) {
      if (signature.length !== bytes) return false;
      // Try every key, so that timing does not reveal which one has signed.
      return keys.map((key) => timingSafeEqual(signWith(key, data), signature)).includes(true);
    },
  };
}
