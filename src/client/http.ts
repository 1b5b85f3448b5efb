import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer, Body, Method, Path, Place, Query } from './api.ts';
import { SendwrightError } from './errors.ts';

export interface Options {
  /** Where the API is, such as `https://mail.example.com`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Milliseconds for one try of a request; 60,000 without it. */
  readonly timeout?: number | undefined;
  /** How often a request that failed in passing is made again; 3 without it. */
  readonly retries?: number | undefined;
  /** Instead of the global one: for tests, or a proxy. */
  readonly fetch?: typeof fetch | undefined;
}

/** What may be said of one request that sends. */
export interface SendOptions {
  /** The request is carried out once for each key in 24 hours. Without it one is made up, so that tries are not. */
  readonly idempotencyKey?: string | undefined;
}

/** What a request consists of besides method and path. */
export interface Given<P extends Path, M extends Method> {
  readonly place?: Place<P, M>;
  readonly query?: Query<P, M>;
  readonly body?: Body<P, M>;
  /** Given by the operations that take an Idempotency-Key. */
  readonly send?: SendOptions;
}

export type Call = <P extends Path, M extends Method>(method: M, path: P, given?: Given<P, M>) => Promise<Answer<P, M>>;

const TIMEOUT = 60_000;
const RETRIES = 3;
/** Milliseconds before the second try; they double from there. */
const WAIT = 500;
/** Milliseconds that a program may be kept waiting before a try. What takes longer, it is told. */
const LONGEST_WAIT = 60_000;

/**
 * Makes requests. One that failed in passing is made again when that can do no harm: reading, changing and deleting may be
 * repeated, and sending carries an Idempotency-Key; anything else only after 429, which says that nothing was done.
 */
export function makeCall({ baseUrl, apiKey, timeout = TIMEOUT, retries = RETRIES, fetch: ask = fetch }: Options): Call {
  let base = new URL(baseUrl).href;
  while (base.endsWith('/')) base = base.slice(0, -1);
  return async (method, path, { place, query, body, send } = {}) => {
    const url = base + filled(path, place) + written(query);
    const key = send && (send.idempotencyKey ?? randomUUID());
    const mayRepeat = method !== 'post' || key !== undefined;
    const headers = {
      authorization: `Bearer ${apiKey}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      // A header holds bytes; those of UTF-8 are what the API reads.
      ...(key !== undefined && { 'idempotency-key': Buffer.from(key).toString('latin1') }),
    };
    const json = body === undefined ? null : JSON.stringify(body);
    let lost = false;
    for (let tries = 0; ; tries++) {
      try {
        const signal = AbortSignal.timeout(timeout);
        // A redirect would carry the key elsewhere.
        const init: RequestInit = { method: method.toUpperCase(), headers, body: json, redirect: 'manual', signal };
        return (await readAnswer(base, await ask(url, init))) as never;
      } catch (thrown) {
        const error = thrown instanceof SendwrightError ? thrown : silence(base, timeout, thrown);
        // The try before, whose answer was lost, has deleted it.
        if (lost && method === 'delete' && error.status === 404) return undefined as never;
        const wait = waitBefore(error, tries, mayRepeat);
        if (wait === undefined || tries >= retries) throw error;
        lost ||= error.status === undefined || error.status >= 500;
        await sleep(wait);
      }
    }
  };
}

/** Milliseconds before the next try; undefined when there should be none. */
function waitBefore(
  { code, status, retryAfter }: SendwrightError,
  tries: number,
  mayRepeat: boolean,
): number | undefined {
  // A try whose answer was lost may be under way still.
  const passes = status === undefined || status >= 500 || code === 'concurrent_idempotent_requests';
  if (code !== 'rate_limit_exceeded' && !(mayRepeat && passes)) return undefined;
  const wait = retryAfter === undefined ? WAIT * 2 ** tries * (0.5 + Math.random()) : retryAfter * 1_000;
  return wait <= LONGEST_WAIT ? wait : undefined;
}

async function readAnswer(base: string, response: Response): Promise<unknown> {
  const { status, ok, headers } = response;
  const text = await response.text();
  if (status === 204) return undefined;
  const answer = parsed(text);
  if (ok && answer !== undefined) return answer;
  const { error } = (answer ?? {}) as { error?: { code: SendwrightError['code']; message: string; param?: string } };
  const requestId = headers.get('x-request-id') ?? undefined;
  const retryAfter = secondsIn(headers.get('retry-after'));
  if (typeof error?.message === 'string')
    throw new SendwrightError(error.message, { code: error.code, status, param: error.param, requestId, retryAfter });
  const message = `${base} answers ${status} and no JSON of Sendwright's`;
  throw new SendwrightError(message, { code: 'unexpected_answer', status, requestId, retryAfter });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function secondsIn(header: string | null): number | undefined {
  return header !== null && /^\d{1,9}$/.test(header) ? Number(header) : undefined;
}

function silence(base: string, timeout: number, cause: unknown): SendwrightError {
  const isLate = (cause as { name?: unknown } | undefined)?.name === 'TimeoutError';
  const problem = isLate ? `has not answered within ${timeout / 1_000} seconds` : 'does not answer';
  return new SendwrightError(`the API at ${base} ${problem}`, { code: isLate ? 'timeout' : 'no_answer', cause });
}

function filled(path: string, place: object = {}): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = String((place as Record<string, string>)[name]);
    // Either would lead to another operation's address.
    if (/^\.{0,2}$/.test(value)) throw new TypeError(`${name} must be an id, not ${JSON.stringify(value)}`);
    return encodeURIComponent(value);
  });
}

type Scalar = string | number | boolean;

/** As the part of a URL behind its path: a list repeats its name, and what is undefined is left out. */
function written(query: object = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query as Record<string, Scalar | readonly Scalar[] | undefined>)) {
    for (const each of [value].flat()) if (each !== undefined) search.append(name, String(each));
  }
  return search.size === 0 ? '' : `?${search.toString()}`;
}
