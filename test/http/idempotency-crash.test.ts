import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { request } from 'undici';
import { makeKeyHolder } from '../../src/store/limits/idempotency.ts';
import { eventually } from '../support/eventually.ts';
import { startApi } from './api-process.ts';
import { assertRefused, type Organization, type Service, startService } from './service.ts';
import { dial, head } from './socket.ts';

/** What becomes of an idempotency key when the process or the connection that has it ends. */
let service: Service;
let ours: Organization;
before(async () => {
  service = await startService();
  ours = await service.organization();
});
after(() => service.close());

/** Holds up everybody who would store an email's body, until it is released. */
async function holdUp(): Promise<() => Promise<void>> {
  const client = await service.pool.connect();
  await client.query('BEGIN');
  await client.query('LOCK TABLE email_bodies IN SHARE MODE');
  return async () => {
    await client.query('ROLLBACK');
    client.release();
  };
}

async function someoneWaits(): Promise<void> {
  await eventually('a statement waits for the table', async () => {
    const { rowCount } = await service.pool.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    return rowCount === 1;
  });
}

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
    it(`${path}: others get 409 while it has the key, and the key when it is gone; one of them is sent`, async () => {
      const api = await startApi({ DATABASE_URL: service.databaseUrl });
      const key = `killed at ${path}`;
      const json = wrap(ours.mail({ subject: key }));
      const headers = { 'idempotency-key': key };
      const letOn = await holdUp();
      const lost = request(api.url + path, {
        method: 'POST',
        headers: { ...headers, authorization: `Bearer ${ours.key}`, 'content-type': 'application/json' },
        body: JSON.stringify(json),
      }).catch(() => 'lost');
      await someoneWaits();
      const other = await ours.call('POST', path, { json, headers });
      assertRefused(other, 409, 'concurrent_idempotent_requests');

      await api.end('SIGKILL');
      assert.equal(await lost, 'lost');
      const keys = makeKeyHolder(service.pool);
      const release = await eventually('the key is free', () => keys.take(ours.id, key), 5_000);
      assert.equal(typeof release, 'function');
      if (typeof release === 'function') await release();
      await letOn();

      // What Postgres was at when the process ended may have been finished by it: then that is what is repeated.
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

describe('a caller who hangs up', () => {
  it('before the answer: the email is stored, the key is remembered', async () => {
    const letOn = await holdUp();
    const json = ours.mail({ subject: 'hung up' });
    const raw = JSON.stringify(json);
    const lines = ['Content-Type: application/json', `Content-Length: ${raw.length}`, 'Idempotency-Key: hung up'];
    const socket = await dial(service.port);
    socket.write(head('/v1/emails', ours.key, ...lines) + raw);
    await someoneWaits();
    socket.destroy();
    const call = { json, headers: { 'idempotency-key': 'hung up' } };
    assertRefused(await ours.call('POST', '/v1/emails', call), 409, 'concurrent_idempotent_requests');
    await letOn();
    const replay = await eventually('a replay', async () => {
      const answer = await ours.call('POST', '/v1/emails', call);
      return answer.status === 202 && answer;
    });
    assert.equal(replay.headers['idempotent-replayed'], 'true');
    assert.deepEqual(await stored('hung up'), [(replay.body as { id: string }).id]);
    await nobodyHolds();
  });

  it('and whose request is refused: the key is free', async () => {
    const call = { json: ours.mail({ from: 'a@nobody.example' }), headers: { 'idempotency-key': 'refused' } };
    const raw = JSON.stringify(call.json);
    const lines = ['Content-Type: application/json', `Content-Length: ${raw.length}`, 'Idempotency-Key: refused'];
    const socket = await dial(service.port);
    socket.write(head('/v1/emails', ours.key, ...lines) + raw);
    socket.destroy();
    // The server may take the request up only now.
    await eventually('the key is free', async () => {
      const { status } = await ours.call('POST', '/v1/emails', { ...call, json: ours.mail() });
      return status === 202;
    });
    await nobodyHolds();
  });
});

describe('a connection that breaks while it holds keys', () => {
  it('the table takes one answer per key all the same', async () => {
    const letOn = await holdUp();
    const call = { json: ours.mail({ subject: 'broken' }), headers: { 'idempotency-key': 'broken' } };
    const first = ours.call('POST', '/v1/emails', call);
    await someoneWaits();
    const { rowCount } = await service.pool.query(
      `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    );
    assert.equal(rowCount, 1);
    // Another process, which knows nothing of what this one holds.
    const api = await startApi({ DATABASE_URL: service.databaseUrl });
    const second = request(`${api.url}/v1/emails`, {
      method: 'POST',
      headers: { ...call.headers, authorization: `Bearer ${ours.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(call.json),
    });
    await eventually('both wait', async () => {
      const { rows } = await service.pool.query<{ waiting: number }>(
        `SELECT count(*)::int AS waiting FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      return rows[0]?.waiting === 2;
    });
    await letOn();
    const { statusCode, body } = await second;
    await body.dump();
    assert.deepEqual([(await first).status, statusCode].sort(), [202, 409]);
    assert.equal((await stored('broken')).length, 1);
    assert.equal((await ours.call('POST', '/v1/emails', call)).headers['idempotent-replayed'], 'true');
    await api.end();
  });
});

async function nobodyHolds(): Promise<void> {
  await eventually('no key is held', async () => {
    const { rowCount } = await service.pool.query(
      `SELECT FROM pg_locks WHERE locktype = 'advisory'
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    );
    return rowCount === 0;
  });
}
