import { createHmac, timingSafeEqual } from 'node:crypto';
import type { WebhookEvent } from './api.ts';

/** `Headers` of Fetch, of any implementation. */
interface FetchHeaders {
  readonly get: (name: string) => string | null;
}

/** Headers as in Fetch, Node and most frameworks. */
export type WebhookHeaders = FetchHeaders | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyOptions {
  /** Maximum difference between this clock and the sender's in seconds; 300 by default. */
  readonly tolerance?: number;
  /** The current time in Unix milliseconds; this machine's clock by default. */
  readonly now?: number;
}

/** The delivery is not authentic. Respond with a 4xx, so that an invalid signature does not look like a success. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
}

const TOLERANCE_SECONDS = 300;
/** Each header is sent with both prefixes. */
const PREFIXES = ['webhook', 'service'];

/**
 * Verifies a delivery's signature and age (Standard Webhooks 1.0.0) and returns its event.
 * @param rawBody the received bytes: JSON that was parsed and serialized again has another signature
 * @param secret the endpoint's secret, `whsec_…`; several during a rotation
 * @throws WebhookVerificationError
 */
export function verifyWebhook(
  rawBody: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  { tolerance = TOLERANCE_SECONDS, now = Date.now() }: VerifyOptions = {},
): WebhookEvent {
  const keys = [secret].flat().map(decodeSecret);
  const { id, timestamp, signature } = readHeaders(headers);
  if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookVerificationError('the timestamp is not a number of seconds');
  const age = now / 1_000 - Number(timestamp);
  if (Math.abs(age) > tolerance) {
    const problem = age > 0 ? 'too old: it may be a repeat' : 'in the future';
    throw new WebhookVerificationError(
      `the timestamp is ${problem}, or the clocks differ by more than ${tolerance} seconds`,
    );
  }
  const expected = keys.map((key) => createHmac('sha256', key).update(`${id}.${timestamp}.`).update(rawBody).digest());
  const signatures = signature
    .split(' ')
    .flatMap((each) => (each.startsWith('v1,') ? Buffer.from(each.slice(3), 'base64') : []));
  const isOurs = signatures.some((mac) =>
    expected.some((ours) => mac.length === ours.length && timingSafeEqual(mac, ours)),
  );
  if (!isOurs)
    throw new WebhookVerificationError(
      'the signature is not that of the secret: is it the right one, and the body as it came?',
    );
  return JSON.parse(typeof rawBody === 'string' ? rawBody : Buffer.from(rawBody).toString()) as WebhookEvent;
}

function decodeSecret(secret: string): Buffer {
  const bytes = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  // Anyone could sign with an empty key.
  if (bytes.length < 16) throw new TypeError('the secret must be that of the endpoint: whsec_ and base64');
  return bytes;
}

function readHeaders(headers: WebhookHeaders): { id: string; timestamp: string; signature: string } {
  const read = headerReader(headers);
  for (const prefix of PREFIXES) {
    const [id, timestamp, signature] = ['id', 'timestamp', 'signature'].map((part) => read(`${prefix}-${part}`));
    if (typeof id === 'string' && typeof timestamp === 'string' && typeof signature === 'string')
      return { id, timestamp, signature };
  }
  throw new WebhookVerificationError('webhook-id, webhook-timestamp or webhook-signature is missing');
}

/** Returns a function that returns a string only for a header that was sent once. */
function headerReader(headers: WebhookHeaders): (name: string) => unknown {
  // Not `instanceof Headers`: a framework may use another implementation than the global one.
  if (isFetchHeaders(headers)) return (name) => headers.get(name);
  const byName = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  return (name) => {
    const value = byName.get(name);
    return typeof value === 'object' && value.length === 1 ? value[0] : value;
  };
}

function isFetchHeaders(headers: WebhookHeaders): headers is FetchHeaders {
  return typeof headers['get'] === 'function';
}
