import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { addDomain } from '../../src/accounts/domains.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { lived } from '../support/lived.ts';
import { post, startApi } from './api-process.ts';
import { dial, head, listen } from './socket.ts';

let database: TestDatabase;
let key: string;
before(async () => {
  database = await testDatabase();
  const organization = await createOrganization(database.pool, 'process');
  key = organization.api_key;
  await addDomain(database.pool, organization.id, 'a.example', true);
});
after(() => database.drop());

const mail = () => ({ from: 'a@a.example', to: 'b@example.net', subject: 'Hello', text: 'Hi' });

it('accepts email while Temporal is away, and leaves word for it', async (t) => {
  const api = await startApi({ DATABASE_URL: database.url });
  t.after(() => api.child.kill('SIGKILL'));
  assert.equal(await post(`${api.url}/v1/emails`, mail(), { authorization: `Bearer ${key}` }), 202);
  const { statusCode } = await request(`${api.url}/readyz`);
  assert.equal(statusCode, 200);
  const { rows } = await database.pool.query('SELECT action FROM outbox');
  assert.deepEqual(rows, [{ action: 'start' }]);
  assert.deepEqual(await api.end(), [0, null]);
});

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  it(`${signal} ends it in good order while Temporal is away: what is under way is answered first`, async (t) => {
    const api = await startApi({ DATABASE_URL: database.url });
    t.after(() => api.child.kill('SIGKILL'));
    const socket = await dial(Number(new URL(api.url).port));
    const json = JSON.stringify(mail());
    const lines = ['Content-Type: application/json', `Content-Length: ${json.length}`];
    socket.write(head('/v1/emails', key, ...lines) + json.slice(0, 10));
    // Until it has been read that far.
    await sleep(200);
    const from = lived();
    const ended = api.end(signal);
    await sleep(200);
    socket.write(json.slice(10));
    const { status, closed } = await listen(socket);
    assert.deepEqual([status, closed], [202, true]);
    assert.deepEqual(await ended, [0, null]);
    assert.ok(lived() - from < 5_000);
    assert.doesNotMatch(api.printed(), /AbortError|unhandled/i);
  });
}

it('waits for nobody who has asked nothing', async (t) => {
  const api = await startApi({ DATABASE_URL: database.url });
  t.after(() => api.child.kill('SIGKILL'));
  const port = Number(new URL(api.url).port);
  const [silent, half, kept] = [await dial(port), await dial(port), await dial(port)];
  half.write('GET /healthz HTTP/1.1\r\nHos');
  kept.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /heal');
  await sleep(200);
  const from = lived();
  assert.deepEqual(await api.end(), [0, null]);
  assert.ok(lived() - from < 2_000);
  for (const socket of [silent, half, kept]) socket.destroy();
});

it('ends when the process that started it is gone', async (t) => {
  const api = await startApi({ DATABASE_URL: database.url });
  t.after(() => api.child.kill('SIGKILL'));
  const exited = new Promise((resolve) => api.child.once('exit', (...how) => resolve(how)));
  api.child.disconnect();
  assert.deepEqual(await exited, [0, null]);
});

for (const [what, env, says] of [
  ['without a database', {}, "DATABASE_URL is missing: URL of Sendwright's Postgres database"],
  [
    'with half of the credentials of a callback',
    { DATABASE_URL: 'postgres://a', POSTMARK_WEBHOOK_USER: 'x' },
    'POSTMARK_WEBHOOK_PASSWORD is missing: password that Postmark gives',
  ],
  ['with a bad port', { DATABASE_URL: 'postgres://a', PORT: 'x' }, 'PORT is malformed: port of the API'],
] as const) {
  it(`${what} it stops at once with one line`, async () => {
    const reason = await startApi(env).then(
      () => '',
      (error: unknown) => (error as Error).message,
    );
    const [, line, ...more] = reason.split(/served: |\n/);
    assert.ok(line?.startsWith(says), reason);
    assert.deepEqual(more, ['']);
  });
}
