import { hash, timingSafeEqual } from 'node:crypto';

/** SHA-256. It is stored in place of secrets and tokens: 256 random bits need no slow hash. */
export function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

/** Compares digests, so that timing reveals neither contents nor lengths. */
export function isSame(a: string, b: string): boolean {
  return timingSafeEqual(digest(a), digest(b));
}
