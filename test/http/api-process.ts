import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { request } from 'undici';
import { provided } from '../support/provided.ts';
import { SECRET_KEY } from './service.ts';

/** The API in a process of its own, as it runs in production; Temporal is away. */
export interface ApiProcess {
  readonly url: string;
  readonly child: ChildProcess;
  /** All that it has printed, on either stream. */
  readonly printed: () => string;
  /** Sends a signal. @returns its exit code and signal */
  readonly end: (signal?: NodeJS.Signals) => Promise<unknown[]>;
}

/** Waits until it serves. */
export async function startApi(env: Record<string, string>): Promise<ApiProcess> {
  let printed = '';
  const child = fork(join(provided('TEST_COMPILED'), 'src/main/api.mjs'), {
    execArgv: [],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: { PATH: process.env['PATH'], PORT: '0', TEMPORAL_ADDRESS: '127.0.0.1:1', SECRET_KEY, ...env },
  });
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  const exited = once(child, 'exit');
  const first = await Promise.race([once(child, 'message'), exited.then(() => undefined)]);
  if (!first) throw new Error(`it ended before it served: ${printed}`);
  const { url } = first[0] as { url: string };
  return {
    url,
    child,
    printed: () => printed,
    async end(signal = 'SIGTERM') {
      child.kill(signal);
      return exited;
    },
  };
}

/** Posts JSON, or a text as it is. */
export async function post(url: string, body: unknown, headers: Record<string, string>): Promise<number> {
  const { statusCode, body: answer } = await request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  await answer.dump();
  return statusCode;
}
