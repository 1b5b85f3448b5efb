import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/** Keeps secrets in places that others may read, such as a database or its backups. */
export interface Seal {
  /** @param about whose secret it is: opened as anybody else's, it does not open */
  readonly close: (secret: Buffer, about: string) => Buffer;
  /** @throws Error when it was sealed with another key or about something else, or was changed */
  readonly open: (sealed: Buffer, about: string) => Buffer;
}

/** The form of what is sealed, so that another one can be told from it. */
const FORM = 1;
/** Bytes, as NIST SP 800-38D has them for AES-GCM. */
const NONCE = 12;
const TAG = 16;
const CIPHER = 'aes-256-gcm';

/**
 * Seals with AES-256-GCM: a byte that names the form, a random nonce, the tag, then the secret as it is encrypted.
 * @param key 32 bytes of this purpose alone
 */
export function makeSeal(key: Buffer): Seal {
  return {
    close(secret, about) {
      const nonce = randomBytes(NONCE);
      const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG }).setAAD(Buffer.from(about));
      const encrypted = Buffer.concat([cipher.update(secret), cipher.final()]);
      return Buffer.concat([Buffer.of(FORM), nonce, cipher.getAuthTag(), encrypted]);
    },
    open(sealed, about) {
      if (sealed[0] !== FORM || sealed.length < 1 + NONCE + TAG) throw new Error('this was not sealed by us');
      const [nonce, tag] = [sealed.subarray(1, 1 + NONCE), sealed.subarray(1 + NONCE, 1 + NONCE + TAG)];
      const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG }).setAAD(Buffer.from(about));
      decipher.setAuthTag(tag);
      return Buffer.concat([decipher.update(sealed.subarray(1 + NONCE + TAG)), decipher.final()]);
    },
  };
}
