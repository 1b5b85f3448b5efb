import assert from 'node:assert/strict';
import { once } from 'node:events';
import { it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { registerDomainForOperator } from '../../src/accounts/domains.ts';
import { useDatabase } from '../support/database.ts';
import { type ApiProcess, post, startApi } from './api-process.ts';
import { connectSocket, head, listen } from './socket.ts';

const database = await useDatabase();
const organization = await createOrganization(database.pool, 'process');
await registerDomainForOperator(database.pool, organization.id, 'a.example', true);
const key = organization.api_key;

/** Starts the API, whose Temporal `startApi` makes unreachable, and kills it at the end of the test. */
async function startWithoutTemporal(t: TestContext): Promise<ApiProcess> {
  const api = await startApi({ DATABASE_URL: database.url });
  t.after(() => api.child.kill('SIGKILL'));
  return api;
}
const mail = () => ({ from: 'a@a.example', to: 'b@example.net', subject: 'Hello', text: 'Hi' });

it('accepts email without Temporal and writes it to the outbox', async (t) => {
  const api = await startWithoutTemporal(t);
  assert.equal(await post(`${api.url}/v1/emails`, mail(), { authorization: `Bearer ${key}` }), 202);
  const { statusCode } = await request(`${api.url}/readyz`);
  assert.equal(statusCode, 200);
  const { rows } = await database.pool.query('SELECT action FROM outbox');
  assert.deepEqual(rows, [{ action: 'start' }]);
  assert.deepEqual(await api.end(), [0, null]);
});

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  it(`ends on ${signal} after it has answered the requests that have begun, without Temporal`, async (t) => {
    const api = await startWithoutTemporal(t);
    const socket = await connectSocket(Number(new URL(api.url).port));
    const json = JSON.stringify(mail());
    const lines = ['Content-Type: application/json', `Content-Length: ${json.length}`, 'Expect: 100-continue'];
    socket.write(head('/v1/emails', key, ...lines));
    // The interim response shows that the request has begun.
    assert.match(String(await once(socket, 'data')), /^HTTP\/1.1 100 Continue/);
    const ended = api.end(signal);
    await sleep(200);
    socket.write(json);
    const { status, closed } = await listen(socket);
    assert.deepEqual([status, closed], [202, true]);
    assert.deepEqual(await ended, [0, null]);
    assert.doesNotMatch(api.printed(), /AbortError|unhandled/i);
  });
}

it('ends without waiting for connections that have sent no complete request', async (t) => {
  const api = await startWithoutTemporal(t);
  const port = Number(new URL(api.url).port);
  const [silent, half, kept] = [await connectSocket(port), await connectSocket(port), await connectSocket(port)];
  half.write('GET /healthz HTTP/1.1\r\nHos');
  kept.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /heal');
  await sleep(200);
  // If it waited for them, it would wait for five minutes.
  const timeout = sleep(60_000, 'timeout', { ref: false });
  assert.deepEqual(await Promise.race([api.end(), timeout]), [0, null]);
  for (const socket of [silent, half, kept]) socket.destroy();
});

it('ends when its parent process disconnects', async (t) => {
  const api = await startWithoutTemporal(t);
  const exited = new Promise((resolve) => api.child.once('exit', (...how) => resolve(how)));
  api.child.disconnect();
  assert.deepEqual(await exited, [0, null]);
});

it('stops with one line without a database', async () => {
  const reason = await startApi({}).then(
    () => '',
    (error: unknown) => (error as Error).message,
  );
  const [, line, ...more] = reason.split(/requests: |\n/);
  assert.ok(line?.startsWith("DATABASE_URL is missing: URL of Sendwright's Postgres database"), reason);
  assert.deepEqual(more, ['']);
});
