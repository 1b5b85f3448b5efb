import { createHmac, timingSafeEqual } from 'node:crypto';
import type { DerivedKeys } from './secret-key.ts';

/** Signs with the primary key, and verifies what any of the keys has signed. */
export interface Signer {
  readonly sign: (data: string) => Buffer;
  /** Takes the same time for every signature of the right length, whatever is wrong with it. */
  readonly verify: (data: string, signature: Buffer) => boolean;
}

/**
 * HMAC-SHA256, its output cut to a number of bytes (RFC 2104 §5).
 * @param keys of this purpose alone
 */
export function makeSigner(keys: DerivedKeys, bytes = 32): Signer {
  const signWith = (key: Buffer, data: string) => createHmac('sha256', key).update(data).digest().subarray(0, bytes);
  return {
    sign: (data) => signWith(keys[0], data),
    verify(data, signature) {
      if (signature.length !== bytes) return false;
      // Every key is tried, so that the time does not show which of them has signed.
      return keys.map((key) => timingSafeEqual(signWith(key, data), signature)).includes(true);
    },
  };
}
