import { ANSWER_BYTES } from '../domain/webhooks.ts';
import { parseRetryAfter } from '../lib/retry-after.ts';
import type { EndpointConnection } from '../public-fetch/post.ts';
import { Unfetchable } from '../public-fetch/unfetchable.ts';
import { signedHeaders } from './signature.ts';

/** The result of one attempt. */
export interface WebhookAttempt {
  /** Null without a response. */
  readonly statusCode: number | null;
  readonly durationMs: number;
  /** The first 4 kB of the response, as text. */
  readonly response: string | null;
  /** The reason for a missing or rejected response, as a sentence for the endpoint's owner. */
  readonly error: string | null;
  /** The headers that were sent. */
  readonly requestHeaders: Readonly<Record<string, string>>;
  /** The delay that the endpoint requested. */
  readonly retryAfterMs?: number;
}

/** Returns true for a 2xx response. */
export function isSuccess({ statusCode }: WebhookAttempt): boolean {
  return statusCode !== null && statusCode >= 200 && statusCode <= 299;
}

/** Returns true if the endpoint is gone permanently (RFC 9110 §15.5.11). */
export function isGone({ statusCode }: WebhookAttempt): boolean {
  return statusCode === 410;
}

const HEADERS = { 'user-agent': 'Sendwright', 'content-type': 'application/json', 'accept-encoding': 'identity' };

/**
 * Posts an event once. It does not throw for failures of the endpoint.
 * @param id the event's
 * @param at the time to sign, in Unix milliseconds
 */
export async function attempt(
  connection: EndpointConnection,
  id: string,
  at: number,
  body: string,
  secrets: readonly Buffer[],
): Promise<WebhookAttempt> {
  const began = performance.now();
  const elapsedMs = () => Math.round(performance.now() - began);
  const requestHeaders = Object.assign({}, HEADERS, signedHeaders(id, at, body, secrets));
  try {
    const { status, retryAfter, body: answer } = await connection.post(requestHeaders, body);
    const retryAfterMs = parseRetryAfter(retryAfter, at + elapsedMs());
    return {
      statusCode: status,
      durationMs: elapsedMs(),
      response: answer && toText(answer),
      error: status >= 300 && status <= 399 ? 'it redirects, and redirects are not followed' : null,
      requestHeaders,
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    };
  } catch (error) {
    if (!(error instanceof Unfetchable)) throw error;
    return { statusCode: null, durationMs: elapsedMs(), response: null, error: error.message, requestHeaders };
  }
}

/** Converts bytes to text without NUL, which Postgres refuses, and without a truncated last character. */
function toText(answer: Buffer): string {
  const text = new TextDecoder().decode(answer, { stream: answer.length === ANSWER_BYTES });
  return text.replaceAll('\0', '\uFFFD');
}
