import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** Bytes of a secret. */
const SECRET_BYTES = 32;

/** A new secret of an endpoint. */
export function newSecret(): Buffer {
  return randomBytes(SECRET_BYTES);
}

/** A secret as its owner gets it. */
export function showSecret(secret: Buffer): string {
  return `whsec_${secret.toString('base64')}`;
}

/** The bytes of a secret as `showSecret` writes it. */
export function readSecret(shown: string): Buffer {
  return Buffer.from(shown.replace(/^whsec_/, ''), 'base64');
}

/**
 * The headers of one try of a delivery: id, time and signature as Standard Webhooks 1.0.0 has them, under its names and
 * under ours.
 * @param id the same for every try of a delivery
 * @param at Unix milliseconds of this try
 * @param secrets the newest first; each signs
 */
export function signedHeaders(
  id: string,
  at: number,
  body: string,
  secrets: readonly Buffer[],
): Record<string, string> {
  const timestamp = String(Math.floor(at / 1_000));
  const signatures = secrets.map((secret) => `v1,${mac(secret, id, timestamp, body).toString('base64')}`);
  const signature = signatures.join(' ');
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signature,
    'service-id': id,
    'service-timestamp': timestamp,
    'service-signature': signature,
  };
}

/** Seconds by which a receiver's clock and ours may differ; what is older may be somebody's repeat of what he has seen. */
const TOLERANCE = 300;

/**
 * Whether a delivery comes from whoever knows the secret, and just now.
 * @param headers by lower-case name
 * @param body the bytes that came
 * @param now Unix milliseconds
 */
export function isSigned(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  body: Buffer,
  secret: Buffer,
  now: number,
): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers;
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string') return false;
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(now / 1_000 - Number(timestamp)) > TOLERANCE) return false;
  const expected = mac(secret, id, timestamp, body);
  return signatures.split(' ').some((each) => {
    const given = Buffer.from(each.replace(/^v1,/, ''), 'base64');
    return each.startsWith('v1,') && given.length === expected.length && timingSafeEqual(given, expected);
  });
}

function mac(secret: Buffer, id: string, timestamp: string, body: string | Buffer): Buffer {
  return createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body).digest();
}
