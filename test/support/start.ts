import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { Sendwright } from '../../client/index.ts';
import type { InboxMessage } from '../../dev/simulator/inbox/message.ts';
import { type DevFile, readDevFile } from '../../src/main/dev-file.ts';
import { eventually } from './eventually.ts';
import { provided } from './provided.ts';
import { WITHOUT_ENV_FILE } from './without-env-file.ts';

const PROGRAM = fileURLToPath(new URL('../../dev/run.js', import.meta.url));
const ANSWERS_WITHIN = 240_000;

/** A process of `npm start`, without npm around it. */
export interface Launched {
  readonly home: string;
  readonly pid: number;
  /** The current contents of dev.json. */
  readonly dev: () => Promise<DevFile>;
  /** Its output so far. */
  readonly output: () => string;
  /** Resolves to its exit code when it ends. */
  readonly ended: Promise<number | null>;
  /** Sends a signal and waits for the end. @returns the exit code */
  readonly end: (signal?: NodeJS.Signals) => Promise<number | null>;
}

/** A client of its API. */
export function clientOf({ base_url, api_key }: Pick<DevFile, 'base_url' | 'api_key'>): Sendwright {
  return new Sendwright({ baseUrl: base_url, apiKey: api_key });
}

/** A request to the API with its key. @throws AssertionError unless it is answered with 2xx, or the expected status */
export async function call<T = Record<string, unknown>>(
  { base_url, api_key }: Pick<DevFile, 'base_url' | 'api_key'>,
  method: string,
  path: string,
  json?: unknown,
  expected?: number,
): Promise<T> {
  const response = await fetch(base_url + path, {
    method,
    headers: { authorization: `Bearer ${api_key}`, ...(json !== undefined && { 'content-type': 'application/json' }) },
    ...(json !== undefined && { body: JSON.stringify(json) }),
  });
  const text = await response.text();
  assert.ok(expected === undefined ? response.ok : response.status === expected, `${method} ${path}: ${text}`);
  return (text === '' ? {} : JSON.parse(text)) as T;
}

/** What the simulated providers of `npm start` have, latest first. */
export async function readInbox<Message = InboxMessage>({ inbox_url: url }: Pick<DevFile, 'inbox_url'>) {
  const answer = await fetch(`${url ?? ''}/messages?limit=1000`);
  return (await answer.json()) as Message[];
}

/** How many workflows run. @param condition a further condition of Temporal's list filter */
export async function runningWorkflows(
  { temporal_address: address }: Pick<DevFile, 'temporal_address'>,
  condition = '',
): Promise<number> {
  const connection = await Connection.connect({ address });
  try {
    const filter = ["ExecutionStatus = 'Running'", ...(condition === '' ? [] : [condition])].join(' AND ');
    return (await new Client({ connection }).workflow.count(filter)).count;
  } finally {
    await connection.close();
  }
}

/** An empty home for `npm start`. The test run removes it and ends processes that a test left running in it. */
export async function emptyHome(): Promise<string> {
  const homes = provided('TEST_HOMES');
  await mkdir(homes, { recursive: true });
  const home = await mkdtemp(join(homes, 'home-'));
  // Postgres, which may run as another user, must get in.
  await chmod(home, 0o755);
  return home;
}

/** Launches the whole service with the simulator on free ports. It ends with the test. */
export function launchSendwright(t: TestContext, home: string, env: NodeJS.ProcessEnv = {}): Launched {
  const child = spawn(process.execPath, [PROGRAM, 'start'], {
    cwd: WITHOUT_ENV_FILE,
    env: { ...process.env, npm_lifecycle_event: undefined, PORT: '0', SENDWRIGHT_HOME: home, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (printed += text));
  }
  const ended = once(child, 'close').then(([code]) => code as number | null);
  const end = async (signal: NodeJS.Signals = 'SIGINT') => {
    child.kill(signal);
    return ended;
  };
  t.after(() => end());
  return {
    home,
    pid: child.pid ?? 0,
    output: () => printed,
    ended,
    end,
    async dev() {
      const contents = await readDevFile(join(home, 'dev.json'));
      if (contents === undefined) throw new Error('there is no dev.json');
      return contents;
    },
  };
}

/** Launches the whole service and waits until all of it answers. */
export async function startSendwright(t: TestContext, home: string, env: NodeJS.ProcessEnv = {}): Promise<Launched> {
  const launched = launchSendwright(t, home, env);
  let code: number | null | undefined;
  void launched.ended.then((ended) => (code = ended));
  const answers = () => launched.output().includes('Everything answers') || code !== undefined;
  await eventually('all of it answers', answers, ANSWERS_WITHIN);
  if (code !== undefined) throw new Error(`it ended with ${String(code)} and printed:\n${launched.output()}`);
  return launched;
}
