import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { request } from 'undici';
import { setBehaviour } from '../dev/simulator/set-behaviour.ts';
import type { DevFile } from '../src/main/dev-file.ts';

/** The load of single emails. */
export interface LoadOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Request bodies, sent in turn and repeatedly. */
  readonly bodies: readonly string[];
  /** Open connections, each with one concurrent request. */
  readonly connections: number;
  readonly seconds: number;
  /** Requests per second of all connections, evenly spaced; as many as possible by default. */
  readonly rate?: number;
}

/** The result of a load: responses per second, and milliseconds of a request, at a fixed rate from its planned start. */
export interface Load {
  readonly accepted: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
}

const LOADER = fileURLToPath(new URL('loader.ts', import.meta.url));
/** Number of recipients; consecutive requests differ. */
const RECIPIENTS = 200;
/** Milliseconds of one call to the simulated provider in measurements of sending. */
export const PROVIDER_LATENCY_MS = 30;
const POST_CONCURRENCY = 32;

/** An email of about 3 kB. */
export function email(stack: Pick<DevFile, 'from'>, to: string) {
  return {
    from: stack.from,
    to,
    subject: 'Your receipt',
    html: `<p>Thank you.</p>${'<p>A line of an email that is neither short nor long.</p>'.repeat(40)}`,
    text: 'Thank you. '.repeat(40),
    tags: [{ name: 'kind', value: 'receipt' }],
  };
}

export function headers({ api_key }: Pick<DevFile, 'api_key'>) {
  return { authorization: `Bearer ${api_key}`, 'content-type': 'application/json' };
}

/** Posts single emails from a separate process. @throws Error if a request is refused or has no answer */
export async function postSingles(
  stack: DevFile,
  options: Pick<LoadOptions, 'connections' | 'seconds' | 'rate'>,
): Promise<Load> {
  const bodies = Array.from({ length: RECIPIENTS }, (_, i) => JSON.stringify(email(stack, `person-${i}@example.net`)));
  const loader = fork(LOADER, { execArgv: ['--import', 'tsx'] });
  loader.send({ ...options, url: `${stack.base_url}/v1/emails`, headers: headers(stack), bodies });
  const [result] = (await Promise.race([
    once(loader, 'message'),
    once(loader, 'exit').then(([code]) => {
      throw new Error(`the load's process ended with ${String(code)}`);
    }),
  ])) as [Load | { error: string }];
  if ('error' in result) throw new Error(result.error);
  return result;
}

/** Prepares a stack for measurements of sending: sets the latency of its provider and posts single emails. */
export async function warmUp(stack: DevFile, connections: number, seconds: number): Promise<void> {
  await setBehaviour(stack.inbox_url ?? '', { latency_ms: PROVIDER_LATENCY_MS });
  await postSingles(stack, { connections, seconds });
}

/**
 * Returns the request body of a batch, with a separate recipient for each email.
 * @param dueAt an instant; immediately by default
 */
export function batchBody(stack: Pick<DevFile, 'from'>, emails: number, dueAt?: string): string {
  const more = dueAt === undefined ? {} : { scheduled_at: dueAt };
  return JSON.stringify({
    emails: Array.from({ length: emails }, (_, i) => ({ ...email(stack, `person-${i}@example.net`), ...more })),
  });
}

/** Posts a batch. @returns its id */
export async function postBatch(stack: DevFile, body: string): Promise<string> {
  return (await call<{ id: string }>(stack, 'POST', '/v1/emails/batch', body)).id;
}

/** Posts single emails from this process, some concurrently, each to a separate recipient. @returns their ids */
export async function postSome(stack: DevFile, emails: number): Promise<string[]> {
  const ids: string[] = [];
  let next = 0;
  const connection = async () => {
    while (next < emails) {
      const one = email(stack, `single-${next++}@example.net`);
      ids.push((await call<{ id: string }>(stack, 'POST', '/v1/emails', one)).id);
    }
  };
  await Promise.all(Array.from({ length: POST_CONCURRENCY }, connection));
  return ids;
}

/** Sends one request and reads its response. @throws Error if it is refused */
export async function call<T>(stack: DevFile, method: 'GET' | 'POST', path: string, body?: unknown): Promise<T> {
  const answer = await request(stack.base_url + path, {
    method,
    headers: headers(stack),
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await answer.body.text();
  if (answer.statusCode >= 300) throw new Error(`${method} ${path} answered ${answer.statusCode}: ${text}`);
  return JSON.parse(text) as T;
}
