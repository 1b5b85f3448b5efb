import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { makeKeyLocks } from '../../src/store/limits/idempotency.ts';
import { eventually } from '../support/eventually.ts';
import { lockTable, waitForBlocked } from '../support/locks.ts';
import { post, startApi } from './api-process.ts';
import { assertRefused, useService } from './service.ts';
import { connectSocket, head } from './socket.ts';

/** Idempotency keys whose process or connection ends. */
const service = await useService();
const ours = await service.organization();
const authorization = `Bearer ${ours.key}`;

/** Blocks every statement that stores the body of an email. @returns a function that releases them */
const blockStores = (t: TestContext) => lockTable(t, service.pool, 'email_bodies', 'SHARE');

async function stored(subject: string): Promise<string[]> {
  const { rows } = await service.pool.query<{ id: string }>(
    'SELECT coalesce(batch_id, id) AS id FROM emails WHERE subject = $1',
    [subject],
  );
  return rows.map(({ id }) => id);
}

describe('a process that is killed', () => {
  for (const [path, wrap] of [
    ['/v1/emails', (mail: unknown) => mail],
    ['/v1/emails/batch', (mail: unknown) => ({ emails: [mail] })],
  ] as const) {
    it(`${path}: others get 409 while it holds the key and send when it has ended; one of them is executed`, async (t) => {
      const api = await startApi({ DATABASE_URL: service.databaseUrl });
      const key = `killed at ${path}`;
      const json = wrap(ours.mail({ subject: key }));
      const headers = { 'idempotency-key': key };
      const unblock = await blockStores(t);
      const lost = post(api.url + path, json, { ...headers, authorization }).catch(() => 'lost');
      await waitForBlocked(service.pool);
      const other = await ours.call('POST', path, { json, headers });
      assertRefused(other, 409, 'concurrent_idempotent_requests');

      await api.end('SIGKILL');
      assert.equal(await lost, 'lost');
      const keys = makeKeyLocks(service.pool);
      const unlock = await eventually('the key is free', async () => {
        const lock = await keys.lock(ours.id, key);
        return lock.kind === 'locked' && lock.unlock;
      });
      await unlock();
      await unblock();

      // Postgres may complete the statement of the killed process: then its response is replayed.
      const answer = await eventually('an answer', async () => {
        const each = await ours.call('POST', path, { json, headers });
        return each.status === 202 && each;
      });
      const { id } = answer.body as { id: string };
      assert.deepEqual(await stored(key), [id]);
      const again = await ours.call('POST', path, { json, headers });
      assert.deepEqual([again.text, again.headers['idempotent-replayed']], [answer.text, 'true']);
    });
  }
});

describe('a caller that hangs up', () => {
  it('before the response: the email is stored and the key is remembered', async (t) => {
    const unblock = await blockStores(t);
    const json = ours.mail({ subject: 'hung up' });
    const raw = JSON.stringify(json);
    const lines = ['Content-Type: application/json', `Content-Length: ${raw.length}`, 'Idempotency-Key: hung up'];
    const socket = await connectSocket(service.port);
    socket.write(head('/v1/emails', ours.key, ...lines) + raw);
    await waitForBlocked(service.pool);
    socket.destroy();
    const call = { json, headers: { 'idempotency-key': 'hung up' } };
    assertRefused(await ours.call('POST', '/v1/emails', call), 409, 'concurrent_idempotent_requests');
    await unblock();
    const replay = await eventually('a replay', async () => {
      const answer = await ours.call('POST', '/v1/emails', call);
      return answer.status === 202 && answer;
    });
    assert.equal(replay.headers['idempotent-replayed'], 'true');
    assert.deepEqual(await stored('hung up'), [(replay.body as { id: string }).id]);
    await assertNoKeyHeld();
  });

  it('before a refusal: the key is free', async () => {
    const call = { json: ours.mail({ from: 'a@unknown.example' }), headers: { 'idempotency-key': 'refused' } };
    const raw = JSON.stringify(call.json);
    const lines = ['Content-Type: application/json', `Content-Length: ${raw.length}`, 'Idempotency-Key: refused'];
    const socket = await connectSocket(service.port);
    socket.write(head('/v1/emails', ours.key, ...lines) + raw);
    socket.destroy();
    // The server may read the request only now.
    await eventually('the key is free', async () => {
      const { status } = await ours.call('POST', '/v1/emails', { ...call, json: ours.mail() });
      return status === 202;
    });
    await assertNoKeyHeld();
  });
});

describe('a connection that breaks while it holds keys', () => {
  it('does not lead to a second response: the table accepts one for each key', async (t) => {
    // Another process, which does not know the keys that this one holds.
    const api = await startApi({ DATABASE_URL: service.databaseUrl });
    t.after(() => api.end());
    const unblock = await blockStores(t);
    const call = { json: ours.mail({ subject: 'broken' }), headers: { 'idempotency-key': 'broken' } };
    const first = ours.call('POST', '/v1/emails', call);
    await waitForBlocked(service.pool);
    const { rowCount } = await service.pool.query(
      `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    );
    assert.equal(rowCount, 1);
    const second = post(`${api.url}/v1/emails`, call.json, { ...call.headers, authorization });
    await waitForBlocked(service.pool, 2);
    await unblock();
    assert.deepEqual([(await first).status, await second].sort(), [202, 409]);
    assert.equal((await stored('broken')).length, 1);
    assert.equal((await ours.call('POST', '/v1/emails', call)).headers['idempotent-replayed'], 'true');
  });
});

async function assertNoKeyHeld(): Promise<void> {
  await eventually('no key is held', async () => {
    const { rowCount } = await service.pool.query(
      `SELECT FROM pg_locks WHERE locktype = 'advisory'
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    );
    return rowCount === 0;
  });
}
