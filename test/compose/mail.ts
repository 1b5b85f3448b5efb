import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { admin, type Environment, until } from './docker.ts';

const DOMAIN = 'compose.example';
const NUMBER = '+4915112345678';
const run = promisify(execFile);

/** A user of the installation, through the proxy. */
export interface Customer {
  /** Posts to a path of the API. @returns status and body */
  readonly post: (path: string, body: object) => Promise<{ readonly status: number; readonly body: Accepted }>;
  /** Sends an email; repeats the request until it is accepted. @returns its id */
  readonly send: (to: string, more?: object) => Promise<string>;
  /** Sends a chat-app message; repeats the request until it is accepted. @returns its path */
  readonly sendChat: () => Promise<string>;
  /** Waits until a message has a status. */
  readonly waitFor: (path: string, status: string, withinMs?: number) => Promise<void>;
  readonly statusOf: (path: string) => Promise<string>;
  /** Recipients of all emails that were accepted. */
  readonly recipients: ReadonlySet<string>;
  /** Number of emails to a recipient at the simulated providers. */
  readonly received: (to: string) => Promise<number>;
}

/** Common fields of requests that send emails. */
interface Posted {
  readonly to?: string;
  readonly emails?: readonly { readonly to: string }[];
}

interface Accepted {
  readonly id: string;
  readonly status: string;
}

export const email = (to: string, more: object = {}) => {
  return { from: `Compose <hello@${DOMAIN}>`, to, subject: 'Compose', text: 'Hello', ...more };
};

/** Sets up an organization with a domain, a user, a number and an API key by the command line in the containers. */
export async function setUp(environment: Environment, baseUrl: string, inboxUrl: string): Promise<Customer> {
  const { id: organization = '', api_key: key = '' } = await admin(
    environment,
    'organization',
    'create',
    '--name',
    'Compose',
  );
  const ours = ['--organization', organization];
  await admin(environment, 'domain', 'add', ...ours, '--name', DOMAIN, '--verified');
  await admin(environment, 'user', 'create', ...ours, '--email', 'user@compose.example');
  await admin(
    ...[environment, 'number', 'add', ...ours, '--number', NUMBER, '--provider', 'meta'],
    ...['--phone-number-id', '1000001'],
  );
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const signal = () => AbortSignal.timeout(30_000);

  const recipients = new Set<string>();
  const post: Customer['post'] = async (path, body: Posted) => {
    const answer = await fetch(baseUrl + path, {
      ...{ method: 'POST', headers, signal: signal(), body: JSON.stringify(body) },
    });
    if (answer.status === 202) for (const { to } of body.emails ?? [body]) if (to?.includes('@')) recipients.add(to);
    return { status: answer.status, body: (await answer.json()) as Accepted };
  };
  const accept = async (path: string, body: object): Promise<string> => {
    let id = '';
    await until(`POST ${path} is accepted`, 120_000, async () => {
      const answer = await post(path, body);
      id = answer.body.id;
      return answer.status === 202 ? undefined : `${answer.status} ${JSON.stringify(answer.body)}`;
    });
    return id;
  };
  const statusOf = async (path: string): Promise<string> => {
    const answer = await fetch(baseUrl + path, { headers, signal: signal() });
    return ((await answer.json()) as Accepted).status;
  };
  return {
    post,
    statusOf,
    send: (to, more) => accept('/v1/emails', email(to, more)),
    sendChat: async () =>
      `/v1/chatapp/${await accept('/v1/chatapp', { from: NUMBER, to: '+4915198765432', text: 'Hi' })}`,
    waitFor: (path, status, withinMs = 180_000) =>
      until(`${path} is ${status}`, withinMs, async () => {
        const found = await statusOf(path);
        return found === status ? undefined : `it is ${found}`;
      }),
    recipients,
    async received(to) {
      const answer = await fetch(`${inboxUrl}/messages?to=${encodeURIComponent(to)}`, { signal: signal() });
      return ((await answer.json()) as unknown[]).length;
    },
  };
}

/** An instant some seconds from now, as `scheduled_at` takes it. */
export function inSeconds(seconds: number): string {
  return new Date(Date.now() + seconds * 1_000).toISOString();
}

/** Ends a process of this machine as a crash would; `docker kill` would count as stopped by hand and start nothing again. */
export async function crash(environment: Environment, id: string, isOwnEngine: boolean): Promise<void> {
  if (isOwnEngine) {
    const { stdout } = await run('docker', ['inspect', '--format', '{{.State.Pid}}', id], { env: environment.env });
    process.kill(Number(stdout), 'SIGKILL');
    return;
  }
  await run('docker', ['kill', id], { env: environment.env });
  await run('docker', ['start', id], { env: environment.env });
}
