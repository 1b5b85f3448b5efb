import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer, Body, Method, Path, PathParams, Query } from './api.ts';
import { type ErrorDetails, SendwrightError } from './errors.ts';
import { checkOptions, type Options } from './options.ts';

export interface SendOptions {
  /** Requests with the same key send only once within 24 hours. By default each call generates a key, which its retries share. */
  readonly idempotencyKey?: string | undefined;
}

/** The parts of a request besides method and path. */
export interface RequestParts<P extends Path, M extends Method> {
  readonly params?: PathParams<P, M>;
  readonly query?: Query<P, M>;
  readonly body?: Body<P, M>;
  /** Set by operations that accept an Idempotency-Key. */
  readonly send?: SendOptions;
}

export type Call = <P extends Path, M extends Method>(
  method: M,
  path: P,
  parts?: RequestParts<P, M>,
) => Promise<Answer<P, M>>;

/** Delay before the first retry; it doubles with each further one. */
const RETRY_DELAY_MS = 500;
/** Maximum delay before a retry. After a longer Retry-After there is none. */
const MAX_RETRY_DELAY_MS = 60_000;

/**
 * Sends requests, and retries transient failures if that is safe: GET, PATCH and DELETE are idempotent, and requests that send
 * messages have an Idempotency-Key. Other POSTs are retried only after a 429, since the service has then done nothing.
 * @throws SendwrightError if an option is not valid
 */
export function makeCall(options: Options): Call {
  const { base, apiKey, timeoutMs, retries, fetch } = checkOptions(options);
  return async (method, path, { params, query, body, send } = {}) => {
    const url = base + fillPath(path, params) + formatQuery(query);
    const key = send && checkKey(send.idempotencyKey ?? randomUUID());
    const mayRepeat = method !== 'post' || key !== undefined;
    const headers = {
      authorization: `Bearer ${apiKey}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      // fetch accepts only Latin-1 in a header, so each UTF-8 byte, which the API expects, becomes one character.
      ...(key !== undefined && { 'idempotency-key': Buffer.from(key).toString('latin1') }),
    };
    const json = body === undefined ? null : JSON.stringify(body);
    let hasLostAnswer = false;
    for (let tries = 0; ; tries++) {
      try {
        const signal = AbortSignal.timeout(timeoutMs);
        // A redirect would send the key to another address.
        const init: RequestInit = { method: method.toUpperCase(), headers, body: json, redirect: 'manual', signal };
        return (await readAnswer(base, await fetch(url, init))) as never;
      } catch (thrown) {
        const error = thrown instanceof SendwrightError ? thrown : noAnswer(base, timeoutMs, thrown);
        // An earlier attempt, whose response was lost, has deleted it. Erased content is answered with 204 again.
        const isDeleted = method === 'delete' && path !== '/v1/emails/{id}/content' && error.status === 404;
        if (hasLostAnswer && isDeleted) return undefined as never;
        const wait = retryDelay(error, tries, mayRepeat);
        if (wait === undefined || tries >= retries) throw error;
        hasLostAnswer ||= error.status === undefined || error.status >= 500;
        await sleep(wait);
      }
    }
  };
}

/** @throws SendwrightError if a header cannot contain the key */
function checkKey(key: unknown): string {
  // eslint-disable-next-line no-control-regex -- control characters are what this expression is about
  if (typeof key === 'string' && !/[\x00-\x08\x0a-\x1f\x7f]/.test(key)) return key;
  const problem = typeof key === 'string' ? 'contains a control character' : 'is not a string';
  const message = `idempotencyKey: ${problem}; 1 to 256 other characters are allowed`;
  throw new SendwrightError(message, { code: 'invalid_argument', param: 'idempotencyKey' });
}

/** Returns the milliseconds before the next attempt; undefined if there is none. */
export function retryDelay(
  { code, status, retryAfter }: SendwrightError,
  tries: number,
  mayRepeat: boolean,
): number | undefined {
  // An attempt whose response was lost may still be running. 408 means that the request arrived too slowly.
  const isTransient =
    status === undefined || status === 408 || status >= 500 || code === 'concurrent_idempotent_requests';
  if (code !== 'rate_limit_exceeded' && !(mayRepeat && isTransient)) return undefined;
  if (retryAfter === undefined)
    return Math.min(RETRY_DELAY_MS * 2 ** tries * (0.5 + Math.random()), MAX_RETRY_DELAY_MS);
  return retryAfter * 1_000 <= MAX_RETRY_DELAY_MS ? retryAfter * 1_000 : undefined;
}

async function readAnswer(base: string, response: Response): Promise<unknown> {
  const { status, ok, headers } = response;
  const text = await response.text();
  if (status === 204) return undefined;
  const answer = parseJson(text);
  if (ok && answer !== undefined) return answer;
  const { error } = (answer ?? {}) as { error?: ErrorDetails & { readonly message: string } };
  const requestId = headers.get('x-request-id') ?? undefined;
  const retryAfter = secondsIn(headers.get('retry-after'));
  if (typeof error?.message === 'string') {
    const { code, param, errors, docs } = error;
    throw new SendwrightError(error.message, { code, status, param, errors, docs, requestId, retryAfter });
  }
  const message = `${base} answers ${status} and no JSON of Sendwright's`;
  throw new SendwrightError(message, { code: 'unexpected_answer', status, requestId, retryAfter });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function secondsIn(header: string | null): number | undefined {
  return header !== null && /^\d{1,9}$/.test(header) ? Number(header) : undefined;
}

function noAnswer(base: string, timeoutMs: number, cause: unknown): SendwrightError {
  const isLate = (cause as { name?: unknown } | undefined)?.name === 'TimeoutError';
  const problem = isLate ? `has not answered within ${timeoutMs / 1_000} seconds` : 'does not answer';
  return new SendwrightError(`the API at ${base} ${problem}`, { code: isLate ? 'timeout' : 'no_answer', cause });
}

function fillPath(path: string, params: object = {}): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = String((params as Record<string, string>)[name]);
    // Empty, `.` and `..` would change the path to that of another operation.
    if (/^\.{0,2}$/.test(value)) {
      const message = `${name}: ${JSON.stringify(value)} is not an id; the id of an existing object is required`;
      throw new SendwrightError(message, { code: 'invalid_argument', param: name });
    }
    return encodeURIComponent(value);
  });
}

type Scalar = string | number | boolean;

/** Formats a query string. A list repeats its name; undefined values are omitted. */
function formatQuery(query: object = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query as Record<string, Scalar | readonly Scalar[] | undefined>)) {
    for (const each of [value].flat()) if (each !== undefined) search.append(name, String(each));
  }
  return search.size === 0 ? '' : `?${search.toString()}`;
}
