import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type IdempotencyKey, type KeyLock, makeKeyLocks, type Unlock } from '../../src/store/limits/idempotency.ts';
import { deleteExpired } from '../../src/store/upkeep/expired.ts';
import { acceptEmails } from '../../src/store/emails/accept.ts';
import { makePool, type Pool } from '../../src/store/postgres/pool.ts';
import { eventually } from '../support/eventually.ts';
import { organizationFixture } from '../support/organization.ts';
import { newEmail } from './mail.ts';

const { pool, url, orgId } = await organizationFixture(10);

const keyed = (key: string): IdempotencyKey => ({ key, fingerprint: Buffer.alloc(32, key) });

async function locks(): Promise<number> {
  const { rowCount } = await pool.query(
    `SELECT FROM pg_locks WHERE locktype = 'advisory'
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
  );
  return rowCount ?? 0;
}

/** Locks of keys with their own connections, like that of another process. */
async function withProcess(work: (keys: ReturnType<typeof makeKeyLocks>, own: Pool) => Promise<void>): Promise<void> {
  const own = makePool(url, 'another process', 5, () => undefined);
  try {
    await work(makeKeyLocks(own), own);
  } finally {
    await own.end();
  }
}

async function locked(locking: Promise<KeyLock>): Promise<Unlock> {
  const lock = await locking;
  if (lock.kind !== 'locked') throw new Error(`the key is not free: ${lock.kind}`);
  return lock.unlock;
}

async function lockAndUnlock(locking: Promise<KeyLock>): Promise<void> {
  const unlock = await locked(locking);
  await unlock();
}

const IN_PROGRESS = { kind: 'in_progress' };

describe('an idempotency key', () => {
  test('is held by one request at a time, in one process and across processes', async () => {
    const keys = makeKeyLocks(pool);
    await withProcess(async (others) => {
      const unlock = await locked(keys.lock(orgId, 'a'));
      assert.deepEqual(await keys.lock(orgId, 'a'), IN_PROGRESS);
      assert.deepEqual(await others.lock(orgId, 'a'), IN_PROGRESS);
      await lockAndUnlock(others.lock(orgId, 'b'));
      await lockAndUnlock(keys.lock('org_other', 'a'));
      await unlock();
      const again = await locked(others.lock(orgId, 'a'));
      assert.deepEqual(await keys.lock(orgId, 'a'), IN_PROGRESS);
      await again();
      assert.equal(await locks(), 0);
    });
  });

  test('is free in this process as soon as it is released', async () => {
    const keys = makeKeyLocks(pool);
    for (let i = 0; i < 50; i++) {
      const unlocking = (await locked(keys.lock(orgId, 'c')))();
      await lockAndUnlock(keys.lock(orgId, 'c'));
      await unlocking;
    }
    assert.equal(await locks(), 0);
  });

  test('all held keys of a process share one connection, which is released with the last', async () => {
    await withProcess(async (keys, own) => {
      const names = Array.from({ length: 50 }, (_, i) => `k${i}`);
      const unlocks = await Promise.all(names.map((key) => locked(keys.lock(orgId, key))));
      assert.deepEqual([own.totalCount, own.idleCount, await locks()], [1, 0, 50]);
      await Promise.all(unlocks.map((unlock) => unlock()));
      assert.deepEqual([own.totalCount, own.idleCount, await locks()], [1, 1, 0]);
    });
  });

  test('is free when its connection is lost, and the next key uses another connection', async () => {
    await withProcess(async (keys) => {
      const unlock = await locked(keys.lock(orgId, 'd'));
      await pool.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sendwright another process'`,
      );
      await eventually('the lock is gone', async () => (await locks()) === 0);
      await eventually('another key', async () => {
        const other = await keys.lock(orgId, 'e').catch(() => undefined);
        if (other?.kind !== 'locked') return false;
        await other.unlock();
        return true;
      });
      await unlock();
      await lockAndUnlock(keys.lock(orgId, 'd'));
      assert.equal(await locks(), 0);
    });
  });

  test('is not held when the database cannot be reached', async () => {
    const unreachable = makePool('postgres://nobody@127.0.0.1:1/none', 'test', 1, () => undefined);
    const keys = makeKeyLocks(unreachable);
    for (let i = 0; i < 2; i++) await assert.rejects(keys.lock(orgId, 'f'), { code: 'ECONNREFUSED' });
    await unreachable.end();
  });

  test('returns the stored answer and the fingerprint of its request, and cannot be stored twice', async () => {
    const keys = makeKeyLocks(pool);
    const email = newEmail();
    const [answer] = await acceptEmails(pool, orgId, null, [{ ...email, idempotency: keyed('g') }]);
    const { refusal, has_quota, ...expected } = answer ?? {};
    assert.deepEqual([refusal, has_quota], [null, false]);
    const response = { fingerprint: keyed('g').fingerprint, body: expected };
    assert.deepEqual(await keys.lock(orgId, 'g'), { kind: 'completed', response });
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
