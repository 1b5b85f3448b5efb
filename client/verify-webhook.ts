import { createHmac, timingSafeEqual } from 'node:crypto';
import type { WebhookEvent } from './api.ts';

/** Headers as Fetch, Node and most frameworks give them. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyOptions {
  /** Seconds by which this clock and the sender's may differ; 300 without it. */
  readonly tolerance?: number;
  /** Unix milliseconds; this machine's clock without it. */
  readonly now?: number;
}

/** A delivery that is not to be believed. Answer it with a 4xx: a bad signature must not look like a success. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
}

const TOLERANCE = 300;
/** The same three values come under both names. */
const PREFIXES = ['webhook', 'service'];

/**
 * What a delivery says, once it is known to come from whoever has the secret, and just now (Standard Webhooks 1.0.0).
 * @param rawBody the bytes that came: JSON that was read and written again has another signature
 * @param secret the endpoint's, `whsec_…`; several while one takes the place of another
 * @throws WebhookVerificationError
 */
export function verifyWebhook(
  rawBody: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  { tolerance = TOLERANCE, now = Date.now() }: VerifyOptions = {},
): WebhookEvent {
  const keys = [secret].flat().map(bytesOf);
  const { id, timestamp, signature } = namedIn(headers);
  if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookVerificationError('the timestamp is not a number of seconds');
  const age = now / 1_000 - Number(timestamp);
  if (Math.abs(age) > tolerance) {
    const problem = age > 0 ? 'too old: it may be a repeat' : 'in the future';
    throw new WebhookVerificationError(
      `the timestamp is ${problem}, or the clocks differ by more than ${tolerance} seconds`,
    );
  }
  const expected = keys.map((key) => createHmac('sha256', key).update(`${id}.${timestamp}.`).update(rawBody).digest());
  const given = signature
    .split(' ')
    .flatMap((each) => (each.startsWith('v1,') ? Buffer.from(each.slice(3), 'base64') : []));
  const isOurs = given.some((mac) => expected.some((ours) => mac.length === ours.length && timingSafeEqual(mac, ours)));
  if (!isOurs)
    throw new WebhookVerificationError(
      'the signature is not that of the secret: is it the right one, and the body as it came?',
    );
  return JSON.parse(typeof rawBody === 'string' ? rawBody : Buffer.from(rawBody).toString()) as WebhookEvent;
}

function bytesOf(secret: string): Buffer {
  const bytes = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  // With no key anybody could sign.
  if (bytes.length < 16) throw new TypeError('the secret must be that of the endpoint: whsec_ and base64');
  return bytes;
}

function namedIn(headers: WebhookHeaders): { id: string; timestamp: string; signature: string } {
  const all = headers instanceof Headers ? Object.fromEntries(headers) : headers;
  const byName = new Map(Object.entries(all).map(([name, value]) => [name.toLowerCase(), value]));
  for (const prefix of PREFIXES) {
    const [id, timestamp, signature] = ['id', 'timestamp', 'signature'].map((part) => byName.get(`${prefix}-${part}`));
    if (typeof id === 'string' && typeof timestamp === 'string' && typeof signature === 'string')
      return { id, timestamp, signature };
  }
  throw new WebhookVerificationError('webhook-id, webhook-timestamp or webhook-signature is missing');
}
