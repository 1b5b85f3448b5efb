import { join } from 'node:path';
import { request } from 'undici';
import { type DevFile, readDevFile } from '../embedded/dev-file.ts';
import { readSettings } from '../env.ts';

/** The public API, as far as one key may use it. */
export interface Api {
  /** Without a slash at its end. */
  readonly url: string;
  /** An address that may be sent from, where it is known: that of `npm start`. */
  readonly from: string | undefined;
  /**
   * @returns what it answers; undefined for an answer without a body
   * @throws Refusal for whatever else comes of it
   */
  readonly call: <T>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown) => Promise<T>;
}

/** The API did not do what it was asked; the message is a sentence for people. */
export class Refusal extends Error {
  /** Of the answer; undefined when none came. */
  readonly status: number | undefined;
  /** The field at fault. */
  readonly param: string | undefined;

  constructor(message: string, status?: number, param?: string) {
    super(message);
    this.status = status;
    this.param = param;
  }
}

/** Milliseconds for one request; a service that is stopping or starting takes a while. */
const WITHIN = 30_000;

/**
 * The API and key of `SENDWRIGHT_URL` and `SENDWRIGHT_API_KEY`, else of the `npm start` that runs in `SENDWRIGHT_HOME`.
 * Ends the process with a sentence when there are none: the key of one service is never shown to another.
 */
export async function findApi(): Promise<Api> {
  const { SENDWRIGHT_URL, SENDWRIGHT_API_KEY, SENDWRIGHT_HOME } = readSettings();
  const dev: Partial<DevFile> = (await readDevFile(join(SENDWRIGHT_HOME, 'dev.json'))) ?? {};
  const url = SENDWRIGHT_URL ?? dev.base_url ?? readSettings('SENDWRIGHT_URL').SENDWRIGHT_URL;
  const isOurs = url === dev.base_url;
  const key =
    SENDWRIGHT_API_KEY ?? (isOurs ? dev.api_key : undefined) ?? readSettings('SENDWRIGHT_API_KEY').SENDWRIGHT_API_KEY;
  const from = isOurs && key === dev.api_key ? dev.from : undefined;
  return {
    url,
    from,
    call: async <T>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown) =>
      (await ask(url, key, method, path, body)) as T,
  };
}

async function ask(url: string, key: string, method: 'GET' | 'POST' | 'DELETE', path: string, body: unknown) {
  const { status, text } = await answerOf(url + path, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(WITHIN),
  }).catch(() => {
    throw new Refusal(`the API at ${url} does not answer: is it running, and is SENDWRIGHT_URL right?`);
  });
  if (status === 204) return undefined;
  const answer = parse(text);
  if (status >= 200 && status <= 299 && answer !== undefined) return answer;
  const { error } = (answer ?? {}) as { error?: { message?: unknown; param?: string } };
  if (typeof error?.message === 'string') throw new Refusal(error.message, status, error.param);
  throw new Refusal(`${url} answers ${status} and no JSON of ours: is SENDWRIGHT_URL right?`, status);
}

async function answerOf(url: string, options: Parameters<typeof request>[1]) {
  // Redirects are not followed: they would carry the key elsewhere.
  const { statusCode, body } = await request(url, options);
  return { status: statusCode, text: await body.text() };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
