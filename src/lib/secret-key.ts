import { createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';
import { groupBy } from './group.ts';

/** The minimum length of `SECRET_KEY`: 24 random bytes in base64 have 32 characters. */
export const SECRET_KEY_LENGTH = 32;

/** `SECRET_KEY` and the keys of `SECRET_KEY_OLD`. The first signs and seals; each verifies and opens. */
export type SecretKeys = string | readonly [primary: string, ...old: string[]];

/** Keys of one purpose, in the order of their secret keys. */
export type DerivedKeys = readonly [primary: KeyObject, ...old: KeyObject[]];

/** Purposes of the secret key. Changing a name invalidates everything that was signed under it. */
export type KeyPurpose =
  | 'webhook secrets'
  | 'chat credentials'
  | 'data keys'
  | 'DKIM keys'
  | 'cursors'
  | 'download links'
  | 'media links'
  | 'unsubscribe links'
  | 'tracking links'
  | 'dashboard sessions'
  | 'known browsers'
  | 'account links'
  | 'second factors'
  | 'sign-in challenges'
  | 'OIDC sign-ins'
  | 'provider metadata';

/**
 * Derives a 32-byte key for one purpose from the setting `SECRET_KEY` (HKDF with SHA-256, RFC 5869). A signature for one
 * purpose is not valid for another. Keys are `KeyObject`s: with bytes, Node 24 takes 20 µs more for each cipher and HMAC.
 */
export function deriveKey(secretKey: string, purpose: KeyPurpose): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', secretKey, '', `sendwright ${purpose}`, 32)));
}

export function deriveKeys(secretKeys: SecretKeys, purpose: KeyPurpose): DerivedKeys {
  const [primary, ...old] = typeof secretKeys === 'string' ? [secretKeys] : secretKeys;
  return [deriveKey(primary, purpose), ...old.map((key) => deriveKey(key, purpose))];
}

export function secretKeysOf(settings: {
  readonly SECRET_KEY: string;
  readonly SECRET_KEY_OLD?: readonly string[] | undefined;
}): SecretKeys {
  return [settings.SECRET_KEY, ...(settings.SECRET_KEY_OLD ?? [])];
}

/**
 * A key with fewer estimated bits counts as guessable: an attacker can verify guesses offline with an unsubscribe link. The
 * frequencies of so few characters underestimate: 24 random bytes in base64 have at least 120 bits.
 */
const WEAK_BITS = 100;

/** Returns true for a key that is obviously not random: low entropy, repetition or words. Other keys may still be weak. */
export function isWeakSecretKey(secretKey: string): boolean {
  const isWords = /^(?:[a-z]+|[A-Z]+|[A-Z][a-z]+)(?:[\s_.,-]+(?:[a-z]+|[A-Z]+|[A-Z][a-z]+))*$/.test(secretKey);
  const isPeriodic = (secretKey + secretKey).indexOf(secretKey, 1) < secretKey.length;
  return isWords || isPeriodic || characterEntropy(secretKey) * secretKey.length < WEAK_BITS;
}

/** Shannon entropy of the frequencies of a text's characters, in bits per character. */
function characterEntropy(text: string): number {
  const characters = Array.from(text);
  return [...groupBy(characters, (character) => character).values()]
    .map(({ length }) => length / characters.length)
    .reduce((bits, share) => bits - share * Math.log2(share), 0);
}
