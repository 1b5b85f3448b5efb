import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { endKey } from '../../../src/accounts/keys.ts';
import { trySignIn } from '../../dashboard/try-sign-in.ts';
import { demoOrganization, sendDemo } from '../../../dev/environment/demo.ts';
import { readSecrets, writeSecrets } from '../../../dev/environment/secrets.ts';
import { addresses } from '../../../dev/environment/welcome.ts';
import { deleteDomain, findDomains } from '../../../src/store/domains/domains.ts';
import { listNumbers } from '../../../src/store/chat/numbers.ts';
import { useDatabase } from '../../support/database.ts';
import { temporaryFolder } from '../../support/folder.ts';

const { pool, url } = await useDatabase();

test('the demonstration has an organization with a verified domain, the same one at every start', async (t) => {
  const path = join(await temporaryFolder(t), 'secrets.json');
  const first = await demoOrganization(url, path, await readSecrets(path));
  assert.equal(first.domain, 'demo.sendwright.example');
  const [domain] = await findDomains(pool, first.organization_id, [first.domain]);
  assert.equal(domain?.status, 'verified');
  const [number] = await listNumbers(pool, first.organization_id, null, 1);
  assert.equal(number?.number, '+12025550142');
  assert.equal(first.sms_from, '+12025550143');
  assert.deepEqual(await demoOrganization(url, path, await readSecrets(path)), first);
});

test('a deleted key and a deleted domain of the demonstration are made again in the same organization', async (t) => {
  const path = join(await temporaryFolder(t), 'secrets.json');
  const first = await demoOrganization(url, path, await readSecrets(path));
  await endKey(pool, first.api_key);
  const second = await demoOrganization(url, path, await readSecrets(path));
  assert.notEqual(second.api_key, first.api_key);
  assert.deepEqual({ ...second, api_key: first.api_key }, first);

  const [domain] = await findDomains(pool, first.organization_id, [first.domain]);
  await deleteDomain(pool, first.organization_id, domain?.id ?? '');
  const third = await demoOrganization(url, path, await readSecrets(path));
  const [replacement] = await findDomains(pool, first.organization_id, [third.domain]);
  assert.equal(replacement?.status, 'verified');
  assert.deepEqual({ ...third, domain: second.domain }, second);
  assert.deepEqual(await demoOrganization(url, path, await readSecrets(path)), third);
});

test('the demonstration gets a new organization in a database that does not hold the last one', async (t) => {
  const path = join(await temporaryFolder(t), 'secrets.json');
  const first = await demoOrganization(url, path, await readSecrets(path));
  const { demo, ...others } = await readSecrets(path);
  assert.ok(demo);
  await writeSecrets(path, { ...others, demo: { ...demo, organization_id: 'org_of_another_database' } });
  const second = await demoOrganization(url, path, await readSecrets(path));
  assert.notEqual(second.organization_id, first.organization_id);
  assert.match(second.domain, /^[0-9a-f]{8}\.demo\.sendwright\.example$/);
});

test('the demonstration has a dashboard user, whose password stays the same, also in a home from before there was one', async (t) => {
  const path = join(await temporaryFolder(t), 'secrets.json');
  const { dashboard, ...older } = await demoOrganization(url, path, await readSecrets(path));
  const signsIn = ({ email, password }: { email: string; password: string }) => trySignIn(pool, email, password);
  assert.equal(await signsIn(dashboard), 'in');
  assert.deepEqual((await demoOrganization(url, path, await readSecrets(path))).dashboard, dashboard);

  await writeSecrets(path, { ...(await readSecrets(path)), demo: older });
  const { dashboard: later } = await demoOrganization(url, path, await readSecrets(path));
  // The password of the first user is lost.
  assert.notEqual(later.email, dashboard.email);
  assert.equal(await signsIn(later), 'in');
});

const DEMO = {
  organization_id: 'org_1',
  api_key: 'sw_live_1',
  domain: 'demo.example',
  sms_from: '+12025550143',
  dashboard: { email: 'owner@demo.example', password: 'a password' },
};

/** An API that takes an email and then tells one status after another. */
async function fakeApi(statuses: string[]) {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method ?? ''} ${request.url ?? ''} ${request.headers.authorization ?? ''}`);
    const status = request.method === 'POST' ? 'queued' : (statuses.shift() ?? 'sent');
    response.statusCode = status === 'refused' ? 403 : 200;
    response.end(JSON.stringify({ id: 'em_1', to: ['you@example.com'], status, error: null, events: [] }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  after(() => server.close());
  return { requests, baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test('the demonstration email is followed until it is delivered', async () => {
  const { requests, baseUrl } = await fakeApi(['queued', 'queued', 'sent', 'delivered']);
  const { status } = await sendDemo(baseUrl, DEMO, new AbortController().signal);
  assert.equal(status, 'delivered');
  assert.equal(requests[0], 'POST /v1/emails Bearer sw_live_1');
  assert.deepEqual(requests.slice(1), Array(4).fill('GET /v1/emails/em_1 Bearer sw_live_1'));
});

test('prints a curl command that works', async () => {
  const { requests, baseUrl } = await fakeApi([]);
  const stack = {
    baseUrl,
    databaseUrl: 'postgres://localhost/sendwright',
    temporal: { address: '127.0.0.1:7233', namespace: 'default', uiUrl: 'http://127.0.0.1:8233' },
    inboxUrl: `${baseUrl}/inbox`,
    postmarkWebhook: null,
    demo: DEMO,
  };
  const home = { logs: '/home/logs', devFile: '/home/dev.json' };
  const email = { id: 'em_1', to: [], status: 'delivered', error: null, events: [] };
  const text = addresses(stack, home, email).join('\n');
  const user = 'owner@demo.example with the password a password';
  for (const address of [
    `${baseUrl}/dashboard\n`,
    user,
    stack.inboxUrl,
    stack.databaseUrl,
    '/home/logs',
    'query=WorkflowId%3D%22em_1%22',
  ]) {
    assert.ok(text.includes(address), address);
  }
  await promisify(execFile)('/bin/sh', ['-c', text.slice(text.indexOf('curl ')).replace('curl', 'curl -sf')]);
  assert.deepEqual(requests, ['POST /v1/emails Bearer sw_live_1']);
  assert.ok(!text.includes('/callbacks/postmark'));

  const postmarkWebhook = { url: 'https://mail.example/callbacks/postmark', user: 'postmark', password: 'a secret' };
  const real = addresses({ ...stack, inboxUrl: null, postmarkWebhook }, home, undefined).join('\n');
  for (const word of Object.values(postmarkWebhook)) assert.ok(real.includes(word), word);
});
