import { createHash, timingSafeEqual } from 'node:crypto';

/** SHA-256 of a secret or token: all that is kept of it. 256 random bits need no slow hash. */
export function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Compares digests, so that neither contents nor lengths show in the time it takes. */
export function isSame(a: string, b: string): boolean {
  return timingSafeEqual(digest(a), digest(b));
}
