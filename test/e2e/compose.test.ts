import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { atEnd } from '../support/at-end.ts';
import { built } from '../support/built.ts';
import { compose } from '../support/composed.ts';
import { packagesOf } from '../support/dist.ts';
import { eventually } from '../support/eventually.ts';
import { FULL, makeHomeFolder, startOwnServers } from '../support/own-servers.ts';
import { ROOT } from '../support/root.ts';

test('the build needs no development packages, which the image lacks', async () => {
  await built();
  const { dependencies } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as { dependencies: object };
  for (const name of ['api', 'worker', 'migrate', 'admin', 'health-check']) {
    const packages = packagesOf(`dist/src/main/${name}.js`);
    for (const [needed, by] of packages) assert.ok(needed in dependencies, `${name} loads ${needed}, by ${by}`);
    assert.equal(
      packages.size > 0,
      name !== 'health-check',
      `only the health check, which runs every few seconds, loads no packages`,
    );
  }
});

/**
 * docker-compose.yml without Docker: its processes with its commands, environments, secrets and volumes, started in its order,
 * with its health checks.
 */
test('the services of docker-compose.yml work together', async (t) => {
  const began = Date.now();
  await built();
  const folder = await makeHomeFolder();
  const servers = await startOwnServers(folder);
  const after = atEnd(t);
  after(() => servers.stop());
  const composed = await compose({ folder, ...servers });
  after(() => composed.kill());
  t.diagnostic(`${FULL ? 'full server' : 'development server'} ready after ${seconds(began)} s`);

  const started = Date.now();
  await composed.start();
  t.diagnostic(`${composed.containers().length} processes healthy after ${seconds(started)} s`);

  const { id: organization = '', api_key: key } = await composed.admin('organization', 'create', '--name', 'Compose');
  await composed.admin('domain', 'add', '--organization', organization, '--name', 'compose.example', '--verified');
  const number = '+4915112345678';
  await composed.admin(
    ...['number', 'add', '--organization', organization, '--number', number],
    ...['--provider', 'meta', '--phone-number-id', '1000001'],
  );
  const headers = { authorization: `Bearer ${key ?? ''}`, 'content-type': 'application/json' };
  let turn = 0;
  const post = async (path: string, body: object): Promise<string> => {
    const url = composed.urls[turn++ % composed.urls.length] as string;
    const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    const text = await answer.text();
    assert.equal(answer.status, 202, text);
    return (JSON.parse(text) as { id: string }).id;
  };
  const email = (to: string, more: object = {}) => {
    return { from: 'Compose <hello@compose.example>', to, subject: 'Compose', text: 'Hello', ...more };
  };
  const content = Buffer.from('a file that the API stores and a worker sends').toString('base64');

  const sent = Date.now();
  const singles = Array.from({ length: 10 }, (_, i) => `single-${i}@example.net`);
  for (const to of singles) await post('/v1/emails', email(to));
  const batch = Array.from({ length: 200 }, (_, i) => `batch-${i}@example.net`);
  await post('/v1/emails/batch', { emails: batch.map((to) => email(to)) });
  const soon = new Date(Date.now() + 4_000).toISOString();
  await post('/v1/emails', email('later@example.net', { scheduled_at: soon }));
  // Through both replicas of the API, which must share their volume.
  const files = ['file-0@example.net', 'file-1@example.net'];
  for (const to of files) await post('/v1/emails', email(to, { attachments: [{ filename: 'a.txt', content }] }));
  await post('/v1/chatapp', { from: number, to: '+4915198765432', text: 'Hello' });

  const wanted = [...singles, ...batch, 'later@example.net', ...files];
  await eventually(
    'every email is delivered, and known to both replicas',
    async () => {
      const known = await Promise.all(composed.urls.map((url) => list(url, headers, 'emails')));
      return known.every((emails) => wanted.every((to) => emails.get(to) === 'delivered'));
    },
    60_000,
  );
  await eventually('the chat-app message is delivered', async () => {
    const [url = ''] = composed.urls;
    return [...(await list(url, headers, 'chatapp')).values()].join() === 'delivered';
  });
  t.diagnostic(`all sent and reported after ${seconds(sent)} s`);

  const inbox = await readSimulator(composed.simulatorUrl);
  assert.deepEqual(inbox.map(({ to }) => to).sort(), [...wanted, '+4915198765432'].sort(), 'each was sent once');
  for (const to of files) {
    const message = inbox.find((one) => one.to === to);
    assert.equal(message?.attachments?.[0]?.filename, 'a.txt', `${to} has its file`);
  }
  const later = inbox.find(({ to }) => to === 'later@example.net');
  assert.ok(Date.parse(later?.received_at ?? '') >= Date.parse(soon) - 2, `not before its time: ${later?.received_at}`);

  // Until the last reports are processed.
  await sleep(500);
  const stopping = Date.now();
  const ended = await composed.stop();
  t.diagnostic(`all ended after ${seconds(stopping)} s`);
  assert.deepEqual(new Set(Object.values(ended)), new Set([0]), JSON.stringify(ended));
  assert.equal(Object.keys(ended).length, 11, 'two of the API, eight workers, one simulator');
});

async function list(url: string, headers: object, name: 'emails' | 'chatapp'): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (let cursor: string | null = ''; cursor !== null;) {
    const query = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const answer = await fetch(`${url}/v1/${name}?limit=100${query}`, { headers: { ...headers } });
    const page = (await answer.json()) as Record<string, { to: string | string[]; status: string }[]> & {
      next_cursor: string | null;
    };
    for (const { to, status } of page[name === 'emails' ? name : 'messages'] ?? [])
      found.set([to].flat().join(), status);
    cursor = page.next_cursor;
  }
  return found;
}

interface Received {
  readonly to: string;
  readonly received_at: string;
  readonly attachments?: readonly { readonly filename: string }[];
}

async function readSimulator(simulatorUrl: string): Promise<Received[]> {
  const answer = await fetch(`${simulatorUrl}/inbox/messages?limit=1000`);
  const messages = (await answer.json()) as (Omit<Received, 'to'> & { to: string | string[] })[];
  return messages.map((message) => ({ ...message, to: [message.to].flat().join() }));
}

function seconds(since: number): string {
  return ((Date.now() - since) / 1_000).toFixed(1);
}
