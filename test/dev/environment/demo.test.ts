import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { revokeKeyForOperator } from '../../../src/accounts/keys.ts';
import { trySignIn } from '../../dashboard/try-sign-in.ts';
import { demoOrganization, tryDemo } from '../../../dev/environment/demo.ts';
import { makeProgress } from '../../../dev/environment/progress.ts';
import { readSecrets, writeSecrets } from '../../../dev/environment/secrets.ts';
import { addresses } from '../../../dev/environment/welcome.ts';
import { deleteDomain, findDomains } from '../../../src/store/domains/domains.ts';
import { listNumbers } from '../../../src/store/chat/numbers.ts';
import { recordingServer } from '../../providers/servers.ts';
import { useDatabase } from '../../support/database.ts';
import { temporaryFolder } from '../../support/folder.ts';

const { pool, url } = await useDatabase();

/** A folder for secrets, and the demonstration of a start with them. */
async function home(t: TestContext) {
  const path = join(await temporaryFolder(t), 'secrets.json');
  const start = async () => demoOrganization(url, path, await readSecrets(path));
  return { path, start, first: await start() };
}

const signIn = ({ email, password }: { email: string; password: string }) => trySignIn(pool, email, password);

test('the demonstration has a verified domain, a number and a dashboard user, the same ones at every start', async (t) => {
  const { start, first } = await home(t);
  assert.equal(first.domain, 'demo.sendwright.example');
  const [domain] = await findDomains(pool, first.organization_id, [first.domain]);
  assert.equal(domain?.status, 'verified');
  const [number] = await listNumbers(pool, first.organization_id, null, 1);
  assert.equal(number?.number, '+12025550142');
  assert.equal(first.sms_from, '+12025550143');
  assert.equal(await signIn(first.dashboard), 'signed_in');
  assert.deepEqual(await start(), first);
});

test('a deleted key and a deleted or unverified domain of the demonstration are made again in the same organization', async (t) => {
  const { start, first } = await home(t);
  await revokeKeyForOperator(pool, first.api_key);
  const second = await start();
  assert.notEqual(second.api_key, first.api_key);
  assert.deepEqual({ ...second, api_key: first.api_key }, first);

  const [domain] = await findDomains(pool, first.organization_id, [first.domain]);
  await deleteDomain(pool, first.organization_id, domain?.id ?? '');
  const third = await start();
  const [replacement] = await findDomains(pool, first.organization_id, [third.domain]);
  assert.equal(replacement?.status, 'verified');
  assert.deepEqual({ ...third, domain: second.domain }, second);
  assert.deepEqual(await start(), third);

  await pool.query("UPDATE domains SET status = 'pending', trusted = false, verified_at = NULL WHERE name = $1", [
    third.domain,
  ]);
  const fourth = await start();
  const [verified] = await findDomains(pool, first.organization_id, [fourth.domain]);
  assert.equal(verified?.status, 'verified');
});

test('the demonstration gets a new organization in a database that does not hold the last one', async (t) => {
  const { path, start, first } = await home(t);
  const { demo, ...others } = await readSecrets(path);
  assert.ok(demo);
  await writeSecrets(path, { ...others, demo: { ...demo, organization_id: 'org_of_another_database' } });
  const second = await start();
  assert.notEqual(second.organization_id, first.organization_id);
  assert.match(second.domain, /^[0-9a-f]{8}\.demo\.sendwright\.example$/);
});

test('the demonstration gets another dashboard user where the password of the first one is lost', async (t) => {
  const { path, start, first } = await home(t);
  const { dashboard, ...older } = first;
  await writeSecrets(path, { ...(await readSecrets(path)), demo: older });
  const { dashboard: later } = await start();
  assert.notEqual(later.email, dashboard.email);
  assert.equal(await signIn(later), 'signed_in');
});

const DEMO = {
  organization_id: 'org_1',
  api_key: 'sw_live_1',
  domain: 'demo.example',
  sms_from: '+12025550143',
  dashboard: { email: 'owner@demo.example', password: 'a password' },
};

/** What a start gives to the step of the demonstration email, and what it has printed. */
function start(signal = new AbortController().signal) {
  let text = '';
  const progress = makeProgress({ write: (more) => (text += more) });
  return { printed: () => text, context: { progress, signal } };
}

test('the demonstration email is followed until it is delivered', async (t) => {
  const statuses = ['queued', 'queued', 'sent', 'delivered'];
  const events = [{ type: 'email.sent', created_at: '2026-03-01T00:00:00.000Z' }];
  const { url: baseUrl, requests } = await recordingServer(t, ({ method }) => ({
    body: { id: 'em_1', status: method === 'POST' ? 'queued' : statuses.shift(), events },
  }));
  const { printed, context } = start();
  const email = await tryDemo(context, baseUrl, DEMO);
  assert.equal(email?.status, 'delivered');
  assert.match(printed(), /^ {2}✓ Demonstration email {2}\S+ s\n$/);
  assert.deepEqual(
    requests.map(({ method, url: path, headers }) => `${method} ${path} ${headers.authorization}`),
    ['POST /v1/emails Bearer sw_live_1', ...Array<string>(4).fill('GET /v1/emails/em_1 Bearer sw_live_1')],
  );
});

test('the demonstration email is followed until its send is recorded, which its delivery may overtake', async (t) => {
  const types = [
    ['email.queued', 'email.delivered'],
    ['email.queued', 'email.sent', 'email.delivered'],
  ];
  const { url: baseUrl } = await recordingServer(t, ({ method }) => {
    const events =
      method === 'POST' ? [] : (types.shift() ?? []).map((type) => ({ type, created_at: '2026-03-01T00:00:00.000Z' }));
    return { body: { id: 'em_1', status: method === 'POST' ? 'queued' : 'delivered', events } };
  });
  const email = await tryDemo(start().context, baseUrl, DEMO);
  assert.equal(email?.events.length, 3);
});

test('a start continues without the demonstration email if the API refuses it, unless it is being stopped', async (t) => {
  const refusal = { error: { code: 'organization_suspended', message: 'the organization is suspended' } };
  const { url: baseUrl } = await recordingServer(t, () => ({ status: 403, body: refusal }));
  const { printed, context } = start();
  assert.equal(await tryDemo(context, baseUrl, DEMO), undefined);
  assert.match(printed(), /\n! Demonstration email: POST \S+ answered 403: .*the organization is suspended.*\n$/);
  await assert.rejects(tryDemo(start(AbortSignal.abort()).context, baseUrl, DEMO), { name: 'AbortError' });
});

test('prints a curl command that works', async (t) => {
  const { url: baseUrl, requests } = await recordingServer(t, {});
  const stack = {
    baseUrl,
    databaseUrl: 'postgres://localhost/sendwright',
    temporal: { address: '127.0.0.1:7233', namespace: 'default', uiUrl: 'http://127.0.0.1:8233' },
    inboxUrl: `${baseUrl}/inbox`,
    postmarkWebhook: null,
    demo: DEMO,
    settings: {},
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
  assert.deepEqual(
    requests.map(({ method, url: path, headers }) => [method, path, headers.authorization]),
    [['POST', '/v1/emails', 'Bearer sw_live_1']],
  );
  assert.ok(!text.includes('/callbacks/postmark'));

  const postmarkWebhook = { url: 'https://mail.example/callbacks/postmark', user: 'postmark', password: 'a secret' };
  const real = addresses({ ...stack, inboxUrl: null, postmarkWebhook }, home, undefined).join('\n');
  for (const word of Object.values(postmarkWebhook)) assert.ok(real.includes(word), word);
});
