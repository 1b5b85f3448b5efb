import { createHmac, randomBytes } from 'node:crypto';

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

function mac(secret: Buffer, id: string, timestamp: string, body: string): Buffer {
  return createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body).digest();
}
