import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { request } from 'undici';
import { provided } from '../support/provided.ts';
import { WITHOUT_ENV_FILE } from '../support/without-env-file.ts';
import { SECRET_KEY } from './service.ts';

/** The API in its own process, as in production, without Temporal. */
export interface ApiProcess {
  readonly url: string;
  readonly child: ChildProcess;
  /** Its output on both streams. */
  readonly printed: () => string;
  /** Sends a signal. @returns its exit code and signal */
  readonly end: (signal?: NodeJS.Signals) => Promise<unknown[]>;
}

/** Waits until it accepts requests. */
export async function startApi(env: Record<string, string>): Promise<ApiProcess> {
  let printed = '';
  const child = fork(join(provided('TEST_COMPILED'), 'src/main/api.mjs'), {
    cwd: WITHOUT_ENV_FILE,
    execArgv: [],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: { PATH: process.env['PATH'], PORT: '0', TEMPORAL_ADDRESS: '127.0.0.1:1', SECRET_KEY, ...env },
  });
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  const exited = once(child, 'exit');
  const first = await Promise.race([once(child, 'message'), exited.then(() => undefined)]);
  if (!first) throw new Error(`it ended before it accepted requests: ${printed}`);
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

/** Reads the resident memory of a process every 100 ms. @returns a function that returns the peak so far, in bytes */
export function watchMemory({ child }: ApiProcess): () => number {
  let peak = 0;
  const watching = setInterval(() => {
    peak = Math.max(peak, Number(execFileSync('ps', ['-o', 'rss=', '-p', String(child.pid)])) * 1_024);
  }, 100);
  child.once('exit', () => clearInterval(watching));
  return () => peak;
}

/** Posts JSON, or a text unchanged. */
export async function post(url: string, body: unknown, headers: Record<string, string>): Promise<number> {
  const { statusCode, body: answer } = await request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  await answer.dump();
  return statusCode;
}
