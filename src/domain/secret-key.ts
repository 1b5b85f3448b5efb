import { hkdfSync } from 'node:crypto';

/** Characters of the shortest `SECRET_KEY`: 24 random bytes in base64. */
export const SECRET_KEY_LENGTH = 32;

/** What is signed with the secret key. A name that changes makes everything invalid that was signed under the old one. */
export type KeyPurpose =
  | 'webhook secrets'
  | 'chat credentials'
  | 'DKIM keys'
  | 'cursors'
  | 'download links'
  | 'unsubscribe links'
  | 'dashboard sessions';

/**
 * The key of one purpose, 32 bytes, derived from the setting `SECRET_KEY` (HKDF with SHA-256, RFC 5869): what is signed
 * for one purpose is never valid for another.
 */
export function deriveKey(secretKey: string, purpose: KeyPurpose): Buffer {
  return Buffer.from(hkdfSync('sha256', secretKey, '', `sendwright ${purpose}`, 32));
}
