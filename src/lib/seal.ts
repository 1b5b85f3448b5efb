import { createCipheriv, createDecipheriv, createHash, type KeyObject, randomBytes } from 'node:crypto';
import type { DerivedKeys } from './secret-key.ts';

/** Encrypts secrets for storage that others may read, such as a database or its backups. */
export interface Seal {
  /** @param about identifies the owner; a value does not open for another one */
  readonly close: (secret: Buffer, about: string) => Buffer;
  /** @throws UnknownKey, or another error if it was sealed for another owner or was modified */
  readonly open: (sealed: Buffer, about: string) => Buffer;
  /** The first bytes of each result of `close`, which identify the form and the key. */
  readonly prefix: Buffer;
}

/** The form without a key id, from before keys could be rotated. */
const FORM_WITHOUT_KEY = 1;
const FORM = 2;
/** The start of a hash of the key, enough to distinguish a few keys. */
const KEY_ID_BYTES = 4;
/** AES-GCM sizes from NIST SP 800-38D. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = 'aes-256-gcm';
/** Nonces per call of `randomBytes`: a call costs about as much as encrypting an ordinary email. */
const NONCES_PER_REQUEST = 256;

/**
 * Seals with AES-256-GCM. A sealed value consists of a form byte, the key id, a random nonce, the tag and the ciphertext.
 * @param keys 32 bytes each, for this purpose only. The first seals; each opens the values that it has sealed.
 */
export function makeSeal(keys: DerivedKeys): Seal {
  const [primary, ...old] = keys;
  const prefix = prefixOf(primary);
  const openers = [primary, ...old].map((key) => ({ key, prefix: prefixOf(key) }));

  return {
    prefix,
    close: (secret, about) => encrypt(primary, prefix, secret, Buffer.from(about)),
    open(sealed, about) {
      if (sealed[0] === FORM_WITHOUT_KEY) return openWithAny(openers, sealed.subarray(1), about);
      if (sealed[0] !== FORM) throw new Error('the value has no form that is known here');
      const candidates = openers.filter((candidate) => sealed.subarray(0, prefix.length).equals(candidate.prefix));
      return openWithAny(candidates, sealed.subarray(prefix.length), about);
    },
  };
}

function prefixOf(key: KeyObject): Buffer {
  const id = createHash('sha256').update('sendwright key id').update(key.export()).digest().subarray(0, KEY_ID_BYTES);
  return Buffer.concat([Buffer.of(FORM), id]);
}

/** A value was sealed with a key that is none of the keys given here. */
export class UnknownKey extends Error {
  constructor() {
    super('the value was sealed with a key that is not known here');
    this.name = 'UnknownKey';
  }
}

/** @throws the error of the last key if no key opens the value */
function openWithAny(keys: readonly { readonly key: KeyObject }[], encrypted: Buffer, about: string): Buffer {
  let failure: Error = new UnknownKey();
  for (const { key } of keys) {
    try {
      return decrypt(key, encrypted, Buffer.from(about));
    } catch (error) {
      failure = error as Error;
    }
  }
  throw failure;
}

/** @returns the prefix, a random nonce, the tag and the ciphertext */
export function encrypt(key: KeyObject, prefix: Buffer, secret: Buffer, about: Buffer): Buffer {
  const nonce = nextNonce();
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES }).setAAD(about);
  const ciphertext = [cipher.update(secret), cipher.final()];
  return Buffer.concat([prefix, nonce, cipher.getAuthTag(), ...ciphertext]);
}

let unusedNonces = Buffer.alloc(0);

function nextNonce(): Buffer {
  if (unusedNonces.length === 0) unusedNonces = randomBytes(NONCE_BYTES * NONCES_PER_REQUEST);
  const nonce = unusedNonces.subarray(0, NONCE_BYTES);
  unusedNonces = unusedNonces.subarray(NONCE_BYTES);
  return nonce;
}

/** @param encrypted the result of `encrypt` without its prefix */
export function decrypt(key: KeyObject, encrypted: Buffer, about: Buffer): Buffer {
  if (encrypted.length < NONCE_BYTES + TAG_BYTES) throw new Error('the value is too short to be sealed');
  const decipher = createDecipheriv(CIPHER, key, encrypted.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(about).setAuthTag(encrypted.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  return Buffer.concat([decipher.update(encrypted.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
}
