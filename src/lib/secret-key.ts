import { hkdfSync } from 'node:crypto';

/** Characters of the shortest `SECRET_KEY`: 24 random bytes in base64. */
export const SECRET_KEY_LENGTH = 32;

/**
 * The setting `SECRET_KEY`, followed by the keys of `SECRET_KEY_OLD` if there are any. The first signs and seals; each of
 * them verifies and opens.
 */
export type SecretKeys = string | readonly [primary: string, ...old: string[]];

/** Keys of one purpose, in the order of the secret keys that they are derived from. */
export type DerivedKeys = readonly [primary: Buffer, ...old: Buffer[]];

/** What is signed with the secret key. A name that changes makes everything invalid that was signed under the old one. */
export type KeyPurpose =
  | 'webhook secrets'
  | 'chat credentials'
  | 'data keys'
  | 'DKIM keys'
  | 'cursors'
  | 'download links'
  | 'unsubscribe links'
  | 'dashboard sessions'
  | 'known browsers'
  | 'provider metadata';

/**
 * The key of one purpose, 32 bytes, derived from the setting `SECRET_KEY` (HKDF with SHA-256, RFC 5869): what is signed
 * for one purpose is never valid for another.
 */
export function deriveKey(secretKey: string, purpose: KeyPurpose): Buffer {
  return Buffer.from(hkdfSync('sha256', secretKey, '', `sendwright ${purpose}`, 32));
}

/** The keys of one purpose, one of each secret key. */
export function deriveKeys(secretKeys: SecretKeys, purpose: KeyPurpose): DerivedKeys {
  const [primary, ...old] = typeof secretKeys === 'string' ? [secretKeys] : secretKeys;
  return [deriveKey(primary, purpose), ...old.map((key) => deriveKey(key, purpose))];
}

/** The value of `SECRET_KEY` and `SECRET_KEY_OLD` together. */
export function secretKeysOf(settings: {
  readonly SECRET_KEY: string;
  readonly SECRET_KEY_OLD?: readonly string[] | undefined;
}): SecretKeys {
  return [settings.SECRET_KEY, ...(settings.SECRET_KEY_OLD ?? [])];
}

/**
 * Estimated bits below which a key counts as guessable. An unsubscribe link shows whether a guess is right, so guessing
 * needs no access. The frequencies of so few characters underestimate: 24 random bytes in base64 come to 120 bits or more.
 */
const WEAK_BITS = 100;

/**
 * Whether a key is obviously not random: its characters repeat too much, it repeats as a whole, or it consists of
 * words. A key that passes may still be weak.
 */
export function isWeakSecretKey(secretKey: string): boolean {
  const isWords = /^(?:[a-z]+|[A-Z]+|[A-Z][a-z]+)(?:[\s_.,-]+(?:[a-z]+|[A-Z]+|[A-Z][a-z]+))*$/.test(secretKey);
  const isPeriodic = (secretKey + secretKey).indexOf(secretKey, 1) < secretKey.length;
  return isWords || isPeriodic || characterEntropy(secretKey) * secretKey.length < WEAK_BITS;
}

/** Shannon entropy of the frequencies of a text's characters, in bits per character. */
function characterEntropy(text: string): number {
  const counts = new Map<string, number>();
  const characters = Array.from(text);
  for (const character of characters) counts.set(character, (counts.get(character) ?? 0) + 1);
  return [...counts.values()]
    .map((count) => count / characters.length)
    .reduce((bits, share) => bits - share * Math.log2(share), 0);
}
