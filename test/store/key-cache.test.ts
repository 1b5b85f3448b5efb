import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { insertOrganization } from '../../src/store/accounts/organizations.ts';
import { openKeyCache } from '../../src/store/accounts/key-cache.ts';
import { findKey, insertKey, recordUses, revokeKey, showKey } from '../../src/store/accounts/keys.ts';
import type { Pool } from '../../src/store/postgres/pool.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { unstalledMs } from '../support/unstalled-time.ts';
import { proxiedPool } from './proxy.ts';

const database = await useDatabase(10);
await insertOrganization(database.pool, 'org_a', 'A');

let count = 0;
async function newKey(expiresAt: string | null = null, allowedIps: string[] | null = null): Promise<string> {
  const id = `key_${++count}`;
  const rest = { org_id: 'org_a', name: null, preset: 'full_access', domain_ids: null } as const;
  await insertKey(database.pool, {
    ...rest,
    id,
    expires_at: expiresAt,
    allowed_ips: allowedIps,
    sha256: Buffer.alloc(32, 7),
  });
  return id;
}

const lastUsed = async (id: string) => (await showKey(database.pool, 'org_a', id))?.last_used_at ?? undefined;

test('a revoked or expired key is not found, and the first revocation stays', async () => {
  const [revoked, expired] = [await newKey(), await newKey()];
  const revokedAt = async () =>
    (await database.pool.query<object>('SELECT revoked_at FROM api_keys WHERE id = $1', [revoked])).rows;
  await revokeKey(database.pool, revoked);
  const first = await revokedAt();
  assert.equal(await revokeKey(database.pool, revoked), true);
  assert.deepEqual(await revokedAt(), first);
  await database.pool.query(`UPDATE api_keys SET expires_at = now() WHERE id = $1`, [expired]);
  for (const id of [revoked, expired]) assert.equal(await findKey(database.pool, id), undefined);
  assert.equal((await showKey(database.pool, 'org_a', expired))?.id, expired, 'its owner still sees it');
});

test('two processes that record uses of the same keys do not wait for each other', async () => {
  const ids = [await newKey(), await newKey()] as const;
  const client = await database.pool.connect();
  await client.query('BEGIN');
  await recordUses(client, ids.slice(0, 1));
  await recordUses(database.pool, ids.toReversed());
  assert.deepEqual([await lastUsed(ids[0]), typeof (await lastUsed(ids[1]))], [undefined, 'string']);
  await client.query('COMMIT');
  client.release();
  assert.ok(await lastUsed(ids[0]));
});

describe('the API key cache', () => {
  /** Opens a cache that counts its queries. */
  async function open(t: TestContext, pool: Pool = database.pool) {
    let queries = 0;
    const query = (statement: { name?: string }) => {
      if (statement.name === 'find_keys') queries++;
      return pool.query(statement as { text: string });
    };
    const errors: unknown[] = [];
    const cache = openKeyCache({ query } as unknown as Pool, (error) => errors.push(error));
    t.after(cache.stop);
    return { ...cache, errors, queries: () => queries };
  }

  test('concurrent and later requests with keys share a query', async (t) => {
    const [id, other] = [await newKey(null, ['10.0.0.0/8']), await newKey()];
    const cache = await open(t);
    const found = await Promise.all(Array.from({ length: 50 }, (_, i) => cache.find(i % 2 ? id : other)));
    assert.ok(found.every((key, i) => key?.id === (i % 2 ? id : other)));
    assert.equal(found[1]?.allowed?.length, 1, 'with parsed address ranges');
    for (let i = 0; i < 50; i++) assert.equal((await cache.find(id))?.id, id);
    assert.equal(cache.queries(), 1);
  });

  test('refreshes a key that is in use while requests are answered from the cache', async (t) => {
    const id = await newKey();
    let isHeld = false;
    const query = async (statement: { text: string }) => {
      const result = await database.pool.query(statement);
      if (isHeld) await sleep(200);
      return result;
    };
    const cache = await open(t, { query } as unknown as Pool);
    await cache.find(id);
    isHeld = true;
    await sleep(500);
    const start = unstalledMs();
    for (let i = 0; i < 10; i++) assert.equal((await cache.find(id))?.id, id);
    assert.ok(unstalledMs() - start < 150, 'no request waits for the query');
    await eventually('refreshed', () => cache.queries() === 2);
  });

  test('queries an unknown id at most about three times a second, and finds its key within a second', async (t) => {
    const cache = await open(t);
    const id = `key_${count + 1}`;
    for (let i = 0; i < 50; i++) assert.equal(await cache.find(id), undefined);
    assert.equal(cache.queries(), 1);
    assert.equal(cache.isCached(id), false);
    assert.equal(await newKey(), id);
    await eventually('found', async () => (await cache.find(id)) !== undefined, 1_000);
    assert.equal(cache.isCached(id), true);
  });

  const revocations: Readonly<Record<string, (id: string) => Promise<unknown>>> = {
    'revoked by revokeKey': (id) => revokeKey(database.pool, id),
    'revoked in SQL': (id) => database.pool.query('UPDATE api_keys SET revoked_at = now() WHERE id = $1', [id]),
    deleted: (id) => database.pool.query('DELETE FROM api_keys WHERE id = $1', [id]),
    'given an expiry in SQL': (id) => database.pool.query('UPDATE api_keys SET expires_at = now() WHERE id = $1', [id]),
  };
  for (const [name, revoke] of Object.entries(revocations)) {
    test(`refuses within a second a key that is ${name}`, async (t) => {
      const id = await newKey();
      const cache = await open(t);
      assert.equal((await cache.find(id))?.id, id);
      await revoke(id);
      await eventually('refused', async () => (await cache.find(id)) === undefined, 1_000);
    });
  }

  test('refuses an expired key although it is cached', async (t) => {
    const cache = await open(t);
    const { rows } = await database.pool.query<{ at: string }>(`SELECT now() + interval '3 s' AS at`);
    const id = await newKey(rows[0]?.at ?? null);
    assert.equal((await cache.find(id))?.id, id);
    const before = cache.queries();
    await eventually('expired', async () => (await cache.find(id)) === undefined, 5_000);
    assert.ok(cache.queries() - before <= 10);
  });

  test('without a database, rejects once the cached key is too old, and recovers', async (t) => {
    const { proxy, pool } = await proxiedPool(t, database.url);
    const id = await newKey();
    const cache = await open(t, pool);
    await cache.find(id);
    await proxy.close();
    assert.equal((await cache.find(id))?.id, id);
    const refused = await eventually('an error', () => cache.find(id).then(() => undefined, String), 1_500);
    assert.match(refused, /ECONNREFUSED|terminated|ECONNRESET/);
    assert.equal(cache.isCached(id), true);
    await proxy.open();
    await eventually('found', () =>
      cache.find(id).then(
        (key) => key?.id === id,
        () => false,
      ),
    );
  });

  test('records uses about a second later, once a minute', async (t) => {
    const [one, two] = [await newKey(), await newKey()];
    const cache = await open(t);
    for (let i = 0; i < 100; i++) cache.recordUse(one);
    cache.recordUse(two);
    const first = await eventually('recorded', () => lastUsed(one));
    assert.equal(await lastUsed(two), first, 'together');
    cache.recordUse(one);
    await sleep(1_300);
    assert.equal(await lastUsed(one), first);
  });

  test('records pending uses when it stops, and reports and repeats those that could not be recorded', async (t) => {
    const id = await newKey();
    const stopped = await open(t);
    stopped.recordUse(id);
    await stopped.stop();
    assert.match((await lastUsed(id)) ?? '', /Z$/);

    const other = await newKey();
    const { proxy, pool } = await proxiedPool(t, database.url);
    const cache = await open(t, pool);
    await proxy.close();
    cache.recordUse(other);
    await eventually('reported', () => cache.errors.length === 1);
    await proxy.open();
    await eventually('recorded', () => {
      cache.recordUse(other);
      return lastUsed(other);
    });
  });
});
