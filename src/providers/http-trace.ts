import { AsyncLocalStorage } from 'node:async_hooks';
import { Agent, fetch, type RequestInit } from 'undici';

/** What happened on the wire during one call, which an SDK does not tell. */
export interface Trace {
  /** Set when the request failed below HTTP. */
  failure?: { readonly reached: 'never left' | 'may have arrived'; readonly reason: string };
  /** Milliseconds of the answer's Retry-After. */
  retryAfter?: number;
}

/** Failures before the first byte of a request is written: trying again cannot send anything twice. */
const NEVER_LEFT: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'host name not found',
  EAI_AGAIN: 'host name lookup failed',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  UND_ERR_CONNECT_TIMEOUT: 'no connection in time',
};
const CERTIFICATE = /^(?:CERT_|ERR_TLS_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|ERR_SSL_)/;

const traces = new AsyncLocalStorage<Trace>();
const agent = new Agent({ connect: { timeout: 10_000 }, connections: 128, keepAliveTimeout: 20_000 });

/** Runs an SDK call whose HTTP goes through `tracedFetch`, and tells what happened on the wire. */
export async function traced<T>(call: () => Promise<T>): Promise<{ trace: Trace; result: PromiseSettledResult<T> }> {
  const trace: Trace = {};
  const [result] = await traces.run(trace, () => Promise.allSettled([call()]));
  return { trace, result };
}

/** A fetch for SDKs that drop the cause of an error: it notes in the trace whether the request may have arrived. */
export const tracedFetch = (async (input: string, init?: RequestInit) => {
  const trace = traces.getStore();
  try {
    const response = await fetch(input, { ...init, dispatcher: agent });
    const retryAfter = parseRetryAfter(response.headers.get('retry-after'), Date.now());
    if (trace && retryAfter !== undefined) trace.retryAfter = retryAfter;
    return response;
  } catch (error) {
    if (trace) trace.failure = wireFailure(error);
    throw error;
  }
}) as unknown as typeof globalThis.fetch;

function wireFailure(error: unknown): NonNullable<Trace['failure']> {
  for (const code of codes(error)) {
    const reason = NEVER_LEFT[code] ?? (CERTIFICATE.test(code) ? 'its certificate is not trusted' : undefined);
    if (reason !== undefined) return { reached: 'never left', reason };
  }
  const timedOut = error instanceof Error && error.name === 'TimeoutError';
  return { reached: 'may have arrived', reason: timedOut ? 'no answer in time' : 'connection lost' };
}

function codes(error: unknown): string[] {
  if (!(error instanceof Error)) return [];
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown[] };
  return [...(typeof code === 'string' ? [code] : []), ...codes(cause), ...(errors ?? []).flatMap(codes)];
}

/**
 * Retry-After (RFC 9110 §10.2.3), seconds or a date, in milliseconds from `now`; undefined when it is neither.
 * @param now Unix milliseconds
 */
export function parseRetryAfter(value: string | null, now: number): number | undefined {
  if (value === null) return undefined;
  if (/^\d{1,7}$/.test(value.trim())) return Number(value) * 1_000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
