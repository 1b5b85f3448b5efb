import { createHmac, randomBytes } from 'node:crypto';

const SECRET_BYTES = 32;

export function newSecret(): Buffer {
  return randomBytes(SECRET_BYTES);
}

/** Formats a secret for its owner. */
export function formatSecret(secret: Buffer): string {
  return `whsec_${secret.toString('base64')}`;
}

/**
 * Builds the headers of one attempt: id, time and signature by Standard Webhooks 1.0.0, under its names and ours.
 * @param id the same for every attempt of a delivery
 * @param at Unix milliseconds of this attempt
 * @param secrets latest first; each signs
 */
export function signedHeaders(
  id: string,
  at: number,
  body: string,
  secrets: readonly Buffer[],
): Record<string, string> {
  const timestamp = String(Math.floor(at / 1_000));
  const signatures = secrets.map((secret) => `v1,${mac(secret, id, timestamp, body)}`);
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

function mac(secret: Buffer, id: string, timestamp: string, body: string): string {
  return createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body).digest('base64');
}
