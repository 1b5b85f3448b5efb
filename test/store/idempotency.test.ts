import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeKeyHolder, type IdempotencyKey } from '../../src/store/limits/idempotency.ts';
import { deleteExpired } from '../../src/store/upkeep/expired.ts';
import { acceptEmails } from '../../src/store/emails/accept.ts';
import { makePool, type Pool } from '../../src/store/postgres/pool.ts';
import { eventually } from '../support/eventually.ts';
import { useDatabase } from '../support/database.ts';
import { newEmail, organization } from './mail.ts';

const { pool, url } = await useDatabase(10);
const orgId = await organization(pool);

const keyed = (key: string): IdempotencyKey => ({ key, fingerprint: Buffer.alloc(32, key) });

async function locks(): Promise<number> {
  const { rowCount } = await pool.query(
    `SELECT FROM pg_locks WHERE locktype = 'advisory'
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
  );
  return rowCount ?? 0;
}

/** A key holder with its own connections, like that of another process. */
async function withProcess(work: (keys: ReturnType<typeof makeKeyHolder>, own: Pool) => Promise<void>): Promise<void> {
  const own = makePool(url, 'another process', 5, () => undefined);
  try {
    await work(makeKeyHolder(own), own);
  } finally {
    await own.end();
  }
}

type Taking = ReturnType<ReturnType<typeof makeKeyHolder>['take']>;

async function held(taking: Taking): Promise<() => Promise<void>> {
  const taken = await taking;
  if (typeof taken !== 'function') throw new Error('the key is not free');
  return taken;
}

async function takeAndRelease(taking: Taking): Promise<void> {
  const release = await held(taking);
  await release();
}

describe('an idempotency key', () => {
  test('is held by one request at a time, in one process and across processes', async () => {
    const keys = makeKeyHolder(pool);
    await withProcess(async (others) => {
      const release = await held(keys.take(orgId, 'a'));
      assert.equal(await keys.take(orgId, 'a'), undefined);
      assert.equal(await others.take(orgId, 'a'), undefined);
      await takeAndRelease(others.take(orgId, 'b'));
      await takeAndRelease(keys.take('org_other', 'a'));
      await release();
      const again = await held(others.take(orgId, 'a'));
      assert.equal(await keys.take(orgId, 'a'), undefined);
      await again();
      assert.equal(await locks(), 0);
    });
  });

  test('is free in this process as soon as it is released', async () => {
    const keys = makeKeyHolder(pool);
    for (let i = 0; i < 50; i++) {
      const releasing = (await held(keys.take(orgId, 'c')))();
      await takeAndRelease(keys.take(orgId, 'c'));
      await releasing;
    }
    assert.equal(await locks(), 0);
  });

  test('all held keys of a process share one connection, which is released with the last', async () => {
    await withProcess(async (keys, own) => {
      const names = Array.from({ length: 50 }, (_, i) => `k${i}`);
      const releases = await Promise.all(names.map((key) => held(keys.take(orgId, key))));
      assert.deepEqual([own.totalCount, own.idleCount, await locks()], [1, 0, 50]);
      await Promise.all(releases.map((release) => release()));
      assert.deepEqual([own.totalCount, own.idleCount, await locks()], [1, 1, 0]);
    });
  });

  test('is free when its connection is lost, and the next key uses another connection', async () => {
    await withProcess(async (keys) => {
      const release = await held(keys.take(orgId, 'd'));
      await pool.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sendwright another process'`,
      );
      await eventually('the lock is gone', async () => (await locks()) === 0);
      await eventually('another key', async () => {
        const other = await keys.take(orgId, 'e').catch(() => undefined);
        if (typeof other === 'function') await other();
        return typeof other === 'function';
      });
      await release();
      await takeAndRelease(keys.take(orgId, 'd'));
      assert.equal(await locks(), 0);
    });
  });

  test('is not held when the database cannot be reached', async () => {
    const unreachable = makePool('postgres://nobody@127.0.0.1:1/none', 'test', 1, () => undefined);
    const keys = makeKeyHolder(unreachable);
    for (let i = 0; i < 2; i++) await assert.rejects(keys.take(orgId, 'f'), { code: 'ECONNREFUSED' });
    await unreachable.end();
  });

  test('returns the stored answer and the fingerprint of its request, and cannot be stored twice', async () => {
    const keys = makeKeyHolder(pool);
    const email = newEmail();
    const [answer] = await acceptEmails(pool, orgId, null, [{ ...email, idempotency: keyed('g') }]);
    const { refusal, has_quota, ...expected } = answer ?? {};
    assert.deepEqual([refusal, has_quota], [null, false]);
    assert.deepEqual(await keys.take(orgId, 'g'), { fingerprint: keyed('g').fingerprint, answer: expected });
    assert.equal(await locks(), 0);
    await assert.rejects(acceptEmails(pool, orgId, null, [{ ...newEmail(), idempotency: keyed('g') }]), {
      code: '23505',
    });
  });
});

test('deleteExpired deletes keys older than 24 hours, oldest first, and no others', async () => {
  await pool.query('DELETE FROM idempotency_keys');
  for (const [key, age] of [
    ['young', '23 hours 59 minutes'],
    ['old', '24 hours'],
    ['older', '25 hours'],
    ['oldest', '9 days'],
  ] as const) {
    await acceptEmails(pool, orgId, null, [{ ...newEmail(), idempotency: keyed(key) }]);
    await pool.query('UPDATE idempotency_keys SET created_at = now() - $2::interval WHERE key = $1', [key, age]);
  }
  const left = async () => {
    const { rows } = await pool.query<{ key: string }>('SELECT key FROM idempotency_keys ORDER BY created_at');
    return rows.map(({ key }) => key);
  };
  assert.equal(await deleteExpired(pool, 'idempotency_keys', 2), 2);
  assert.deepEqual(await left(), ['old', 'young']);
  assert.equal(await deleteExpired(pool, 'idempotency_keys', 2), 1);
  assert.equal(await deleteExpired(pool, 'idempotency_keys', 2), 0);
  assert.deepEqual(await left(), ['young']);
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    assert.equal(await deleteExpired(client, 'idempotency_keys', 2), 0);
    // Fails if it has locked the row.
    await pool.query('SELECT FROM idempotency_keys FOR UPDATE NOWAIT');
  } finally {
    await client.query('ROLLBACK');
    client.release();
  }
});
