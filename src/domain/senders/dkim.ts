import { generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';

/** The selector at which our own public key is published (RFC 6376 §3.1). */
export const DKIM_SELECTOR = 'sw1';

/** RFC 8301 §3.2 recommends at least 2,048 bits; a key of 4,096 bits exceeds the size of a DNS packet at some servers. */
const KEY_BITS = 2_048;

/** Generates a key pair: the public key as SubjectPublicKeyInfo in base64, the private key as PKCS #8 in DER. */
export async function newDkimKey(): Promise<{ publicKey: string; privateKey: Buffer }> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)('rsa', {
    modulusLength: KEY_BITS,
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'der' },
  });
  return { publicKey: publicKey.toString('base64'), privateKey };
}

/** Returns the TXT record that publishes a key (RFC 6376 §3.6.1). */
export function dkimValue(publicKey: string): string {
  return `v=DKIM1; k=rsa; p=${publicKey}`;
}

/** The key and selector for signing an email. */
export interface DkimSigner {
  readonly domain: string;
  readonly selector: string;
  readonly key: KeyObject;
}
