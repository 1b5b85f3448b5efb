import { AsyncLocalStorage } from 'node:async_hooks';
import { Agent, type Dispatcher, fetch, type RequestInit } from 'undici';
import { parseRetryAfter } from '../lib/retry-after.ts';

/** How far the request of one call came, which an SDK does not report. */
export interface Trace {
  /** Set if the request failed below HTTP. A retry of a request that never left cannot send anything twice. */
  failure?: { readonly reached: 'never left' | 'may have arrived'; readonly reason: string };
  /** Milliseconds of the answer's Retry-After. */
  retryAfterMs?: number;
}

interface Call {
  readonly trace: Trace;
  /** True once its request had a connection, just before its first byte was written. */
  wasSent: boolean;
}

/** SDKs read an answer as a whole, and a proxy may send one that never ends. Answers of providers are far smaller. */
const MAX_ANSWER_BYTES = 16_777_216;

const calls = new AsyncLocalStorage<Call>();
const agent = new Agent({ connect: { timeout: 10_000 }, connections: 128, keepAliveTimeout: 20_000 }).compose(
  (dispatch) => (options, handler) => dispatch(options, observe(handler, calls.getStore())),
);

/**
 * Records when a request gets its connection (after the TLS handshake), just before its first byte is written. Error codes
 * do not show it: the same code may come from a handshake or from a response. Aborts an answer that is too large.
 */
function observe(handler: Dispatcher.DispatchHandler, call: Call | undefined): Dispatcher.DispatchHandler {
  let sizeBytes = 0;
  return {
    onRequestStart(...start) {
      if (call) call.wasSent = true;
      handler.onRequestStart?.(...start);
    },
    onRequestUpgrade: (...upgrade) => handler.onRequestUpgrade?.(...upgrade),
    onResponseStart: (...head) => handler.onResponseStart?.(...head),
    onResponseData(controller, chunk) {
      sizeBytes += chunk.length;
      if (sizeBytes > MAX_ANSWER_BYTES) controller.abort(new Error('the answer is too large'));
      else handler.onResponseData?.(controller, chunk);
    },
    onResponseEnd: (...end) => handler.onResponseEnd?.(...end),
    onResponseError: (...error) => handler.onResponseError?.(...error),
  };
}

/** Runs an SDK call whose HTTP goes through `tracedFetch`. @returns its result, and how far its request came */
export async function traced<T>(call: () => Promise<T>): Promise<{ trace: Trace; result: PromiseSettledResult<T> }> {
  const trace: Trace = {};
  const [result] = await calls.run({ trace, wasSent: false }, () => Promise.allSettled([call()]));
  return { trace, result };
}

/** A fetch for SDKs that drop the cause of an error: it notes in the trace whether the request may have arrived. */
export const tracedFetch = (async (input: string, init?: RequestInit) => {
  const call = calls.getStore();
  try {
    // A redirect would send our credentials to another host.
    const response = await fetch(input, { ...init, redirect: 'manual', dispatcher: agent });
    const retryAfter = parseRetryAfter(response.headers.get('retry-after'), Date.now());
    if (call && retryAfter !== undefined) call.trace.retryAfterMs = retryAfter;
    return response;
  } catch (error) {
    if (call) call.trace.failure = call.wasSent ? mayHaveArrived(error) : neverSent(error);
    throw error;
  }
}) as unknown as typeof globalThis.fetch;

/** The reasons for a missing connection, by the error codes of Node and undici. */
const CONNECTION_REASONS: readonly (readonly [RegExp, string])[] = [
  [/^ECONNREFUSED$/, 'connection refused'],
  [/^ENOTFOUND$/, 'host name not found'],
  [/^EAI_AGAIN$/, 'host name lookup failed'],
  [/^EHOSTUNREACH$/, 'host unreachable'],
  [/^ENETUNREACH$/, 'network unreachable'],
  [/^(?:UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/, 'no connection in time'],
  [/^(?:CERT_|ERR_TLS_CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/, 'its certificate is not trusted'],
  [/^(?:ERR_SSL_|ERR_TLS_)/, 'no secure connection'],
];

function neverSent(error: unknown): NonNullable<Trace['failure']> {
  const found = codes(error).flatMap((code) => CONNECTION_REASONS.filter(([pattern]) => pattern.test(code)));
  const reason = found[0]?.[1] ?? (isTimeout(error) ? 'no connection in time' : 'connection lost');
  return { reached: 'never left', reason };
}

function mayHaveArrived(error: unknown): NonNullable<Trace['failure']> {
  return { reached: 'may have arrived', reason: isTimeout(error) ? 'no answer in time' : 'connection lost' };
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError';
}

function codes(error: unknown): string[] {
  if (!(error instanceof Error)) return [];
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown[] };
  return [...(typeof code === 'string' ? [code] : []), ...codes(cause), ...(errors ?? []).flatMap(codes)];
}

/** An outcome without acceptance. With `unknown`, the provider may have accepted the message. */
interface UnacceptedOutcome {
  readonly kind: 'busy' | 'unknown';
  readonly detail: string;
}

/** Classifies a request that failed below HTTP. */
export function classifyUnanswered(provider: string, { failure }: Trace): UnacceptedOutcome {
  const { reached, reason } = failure ?? { reached: 'may have arrived', reason: 'connection lost' };
  return reached === 'never left'
    ? { kind: 'busy', detail: `${provider} could not be reached: ${reason}.` }
    : { kind: 'unknown', detail: `${provider} did not answer: ${reason}.` };
}

/** Classifies a successful response without a message id. */
export function unclearAnswer(provider: string): UnacceptedOutcome {
  return { kind: 'unknown', detail: `${provider} responded without confirming that it accepted the message.` };
}
