import { randomBytes } from 'node:crypto';
import { digest } from '../lib/digest.ts';
import type { SecretKeys } from '../lib/secret-key.ts';
import { makeSigner } from '../lib/signer.ts';

export const KNOWN_BROWSER_DAYS = 180;

const DAY_MS = 86_400_000;
const ID_BYTES = 16;
const TOKEN = /^([\w-]{22})\.(\d{1,16})\.([\w-]{43})$/;

export type KnownBrowsers = ReturnType<typeof makeKnownBrowsers>;

/**
 * Creates and verifies tokens of browsers in which a user has signed in before. A token is bound to one email address, so
 * that failed sign-ins elsewhere do not lock the user out of this browser. It does not authenticate: the password is still
 * required.
 */
export function makeKnownBrowsers(secretKey: SecretKeys) {
  const signer = makeSigner(secretKey, 'known browsers');
  const signed = (id: string, expiresAt: string, email: string): string =>
    JSON.stringify([id, expiresAt, digest(email).toString('hex')]);

  return {
    /** @param id the browser's existing id for this email */
    issue(email: string, now: number, id = randomBytes(ID_BYTES).toString('base64url')): string {
      const expiresAt = String(now + KNOWN_BROWSER_DAYS * DAY_MS);
      return `${id}.${expiresAt}.${signer.sign(signed(id, expiresAt, email))}`;
    },
    /** @returns the browser's id; undefined for a token that is forged, expired or for another email address */
    read(token: string, email: string, now: number): string | undefined {
      const [, id = '', expiresAt = '', signature = ''] = TOKEN.exec(token) ?? [];
      const isValid = signer.verify(signed(id, expiresAt, email), signature) && Number(expiresAt) > now;
      return isValid ? id : undefined;
    },
  };
}
