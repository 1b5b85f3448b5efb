import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { insertOrganization } from '../../src/store/accounts/organizations.ts';
import { openKeyCache } from '../../src/store/accounts/key-cache.ts';
import { insertKey, revokeKey, showKey } from '../../src/store/accounts/keys.ts';
import { makePool, type Pool } from '../../src/store/postgres/pool.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { databaseProxy } from './proxy.ts';

const database = await useDatabase(10);
await insertOrganization(database.pool, 'org_a', 'A');

describe('the API key cache', () => {
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

  /** A cache that counts its queries. */
  async function open(
    t: TestContext,
    { url = database.url, pool = database.pool }: { url?: string; pool?: Pool } = {},
  ) {
    let queries = 0;
    const query = (statement: { name?: string }) => {
      if (statement.name === 'find_key') queries++;
      return pool.query(statement as { text: string });
    };
    const errors: unknown[] = [];
    const cache = openKeyCache({ query } as unknown as Pool, url, (error) => errors.push(error));
    t.after(cache.stop);
    return { ...cache, errors, queries: () => queries };
  }

  const listeners = async (): Promise<number[]> => {
    const { rows } = await database.pool.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'sendwright key listener' AND backend_type = 'client backend'`,
    );
    return rows.map(({ pid }) => pid);
  };
  /** Waits until a key costs no query for longer than it could without listening. */
  const listening = async (cache: Awaited<ReturnType<typeof open>>, id: string) => {
    await eventually('listening', async () => {
      await cache.find(id);
      const before = cache.queries();
      for (let i = 0; i < 8; i++) {
        await sleep(100);
        await cache.find(id);
      }
      return cache.queries() === before;
    });
  };

  const isGone = (cache: Awaited<ReturnType<typeof open>>, id: string) =>
    eventually('the key is gone', async () => (await cache.find(id)) === undefined, 1_000);

  test('a key costs one query for concurrent and later requests', async (t) => {
    const id = await newKey(null, ['10.0.0.0/8']);
    const cache = await open(t);
    await listening(cache, await newKey());
    const before = cache.queries();
    const found = await Promise.all(Array.from({ length: 50 }, () => cache.find(id)));
    assert.ok(
      found.every((key) => key?.id === id && key.allowed?.length === 1),
      'with its ranges as they are compared',
    );
    for (let i = 0; i < 50; i++) assert.equal((await cache.find(id))?.id, id);
    assert.equal(cache.queries() - before, 1);
  });

  test('an unknown key is cached briefly, and found soon after it is created', async (t) => {
    const cache = await open(t);
    const id = `key_${count + 1}`;
    for (let i = 0; i < 50; i++) assert.equal(await cache.find(id), undefined);
    assert.equal(cache.queries(), 1);
    assert.equal(await newKey(), id);
    await eventually('found', async () => (await cache.find(id)) !== undefined, 1_000);
  });

  for (const [name, revoke] of [
    ['revoked', (id) => revokeKey(database.pool, id)],
    ['deleted in SQL', (id) => database.pool.query('DELETE FROM api_keys WHERE id = $1', [id])],
  ] as [string, (id: string) => Promise<unknown>][])
    test(`a key that is ${name} is not found from a second later on`, async (t) => {
      const id = await newKey();
      const cache = await open(t);
      await listening(cache, id);
      await revoke(id);
      await isGone(cache, id);
    });

  test('a revoked key is not found although the listening connection is cut at that moment', async (t) => {
    const id = await newKey();
    const cache = await open(t);
    await listening(cache, id);
    const pids = await listeners();
    assert.ok(pids.length > 0, 'there is a listener');
    for (const pid of pids) await database.pool.query('SELECT pg_terminate_backend($1)', [pid]);
    await revokeKey(database.pool, id);
    await isGone(cache, id);
  });

  test('a revoked key is not found although the listening connection goes silent, and the cache listens again later', async (t) => {
    const proxy = await databaseProxy(database.url);
    t.after(() => proxy.close());
    const [first, second] = [await newKey(), await newKey()];
    const cache = await open(t, { url: proxy.url });
    await listening(cache, first);
    proxy.silence();
    await revokeKey(database.pool, first);
    await isGone(cache, first);
    await proxy.close();
    await proxy.open();
    await listening(cache, second);
    await revokeKey(database.pool, second);
    await isGone(cache, second);
  });

  test('a revoked key is not found although the cache could never listen', async (t) => {
    const id = await newKey();
    const cache = await open(t, { url: 'postgres://u@127.0.0.1:1/d' });
    assert.equal((await cache.find(id))?.id, id);
    assert.equal((await cache.find(id))?.id, id);
    assert.equal(cache.queries(), 1, 'it is fresh for a moment');
    await revokeKey(database.pool, id);
    await isGone(cache, id);
  });

  test('a key that was read before its revocation and is returned afterwards is not cached', async (t) => {
    const id = await newKey();
    let release = (): void => undefined;
    const gate: { held?: Promise<void> } = {};
    const query = async (statement: { text: string }) => {
      const result = await database.pool.query(statement);
      await gate.held;
      return result;
    };
    const cache = await open(t, { pool: { query } as unknown as Pool });
    await listening(cache, await newKey());
    gate.held = new Promise((resolve) => (release = resolve));
    const early = cache.find(id);
    await sleep(50);
    await revokeKey(database.pool, id);
    await sleep(200);
    release();
    assert.equal((await early)?.id, id);
    assert.equal(await cache.find(id), undefined);
  });

  test('a cached key expires at its time', async (t) => {
    const cache = await open(t);
    await listening(cache, await newKey());
    const { rows } = await database.pool.query<{ at: string }>(`SELECT now() + interval '3 s' AS at`);
    const id = await newKey(rows[0]?.at ?? null);
    assert.equal((await cache.find(id))?.id, id);
    const before = cache.queries();
    await eventually('ended', async () => (await cache.find(id)) === undefined, 5_000);
    const more = cache.queries() - before;
    assert.ok(more <= 10, `${more} queries: it is not cached`);
  });

  test('without a database find throws once the cached key is stale', async (t) => {
    const proxy = await databaseProxy(database.url);
    const pool = makePool(proxy.url, 'test', 2, () => undefined);
    t.after(async () => {
      await pool.end();
      await proxy.close();
    });
    const id = await newKey();
    const cache = await open(t, { url: proxy.url, pool });
    await listening(cache, id);
    await proxy.close();
    const refused = await eventually('an error', () => cache.find(id).then(() => undefined, String), 1_500);
    assert.match(refused, /ECONNREFUSED|terminated|ECONNRESET/);
    await proxy.open();
    await eventually('found', () =>
      cache.find(id).then(
        (key) => key?.id === id,
        () => false,
      ),
    );
  });

  const lastUsed = async (id: string) => (await showKey(database.pool, 'org_a', id))?.last_used_at ?? undefined;

  test('records uses a second later, once a minute', async (t) => {
    const [one, two] = [await newKey(), await newKey()];
    const cache = await open(t);
    for (let i = 0; i < 100; i++) cache.recordUse(one);
    cache.recordUse(two);
    const first = await eventually('noted', () => lastUsed(one));
    assert.equal(await lastUsed(two), first, 'together');
    cache.recordUse(one);
    await sleep(1_300);
    assert.equal(await lastUsed(one), first);
  });

  test('records uses when it stops; reports uses that could not be recorded, and records the next', async (t) => {
    const id = await newKey();
    const stopped = await open(t);
    stopped.recordUse(id);
    await stopped.stop();
    assert.match((await lastUsed(id)) ?? '', /Z$/);

    const [other, proxy] = [await newKey(), await databaseProxy(database.url)];
    const pool = makePool(proxy.url, 'test', 2, () => undefined);
    t.after(async () => {
      await pool.end();
      await proxy.close();
    });
    const cache = await open(t, { pool });
    await proxy.close();
    cache.recordUse(other);
    await eventually('the error is reported', () => cache.errors.length === 1);
    await proxy.open();
    await eventually('noted', () => {
      cache.recordUse(other);
      return lastUsed(other);
    });
  });
});
