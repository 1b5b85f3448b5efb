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

describe('keys in memory', () => {
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

  /** A ring of its own, which counts how often it asks the database. */
  async function open(
    t: TestContext,
    { url = database.url, pool = database.pool }: { url?: string; pool?: Pool } = {},
  ) {
    let questions = 0;
    const query = (statement: { name?: string }) => {
      if (statement.name === 'find_key') questions++;
      return pool.query(statement as { text: string });
    };
    const errors: unknown[] = [];
    const ring = openKeyCache({ query } as unknown as Pool, url, (error) => errors.push(error));
    t.after(ring.stop);
    return { ...ring, errors, questions: () => questions };
  }

  const listeners = async (): Promise<number[]> => {
    const { rows } = await database.pool.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'sendwright key listener' AND backend_type = 'client backend'`,
    );
    return rows.map(({ pid }) => pid);
  };
  /** Until a key that is asked for again and again costs no question for longer than it could without listening. */
  const listening = async (ring: Awaited<ReturnType<typeof open>>, id: string) => {
    await eventually('listening', async () => {
      await ring.find(id);
      const before = ring.questions();
      for (let i = 0; i < 8; i++) {
        await sleep(100);
        await ring.find(id);
      }
      return ring.questions() === before;
    });
  };

  test('cost one question, however many requests ask at once and afterwards', async (t) => {
    const id = await newKey(null, ['10.0.0.0/8']);
    const ring = await open(t);
    await listening(ring, await newKey());
    const before = ring.questions();
    const found = await Promise.all(Array.from({ length: 50 }, () => ring.find(id)));
    assert.ok(
      found.every((key) => key?.id === id && key.allowed?.length === 1),
      'with its ranges as they are compared',
    );
    for (let i = 0; i < 50; i++) assert.equal((await ring.find(id))?.id, id);
    assert.equal(ring.questions() - before, 1);
  });

  test('a stranger is asked about now and then, and let in soon after he got a key', async (t) => {
    const ring = await open(t);
    const id = `key_${count + 1}`;
    for (let i = 0; i < 50; i++) assert.equal(await ring.find(id), undefined);
    assert.equal(ring.questions(), 1);
    assert.equal(await newKey(), id);
    await eventually('found', async () => (await ring.find(id)) !== undefined, 1_000);
  });

  const ways: Readonly<Record<string, (id: string) => Promise<unknown>>> = {
    'by our own function': (id) => revokeKey(database.pool, id),
    'by hand, in SQL': (id) => database.pool.query('UPDATE api_keys SET revoked_at = now() WHERE id = $1', [id]),
    'by deleting its row': (id) => database.pool.query('DELETE FROM api_keys WHERE id = $1', [id]),
    'by letting it expire': (id) => database.pool.query('UPDATE api_keys SET expires_at = now() WHERE id = $1', [id]),
  };
  for (const [way, revoke] of Object.entries(ways)) {
    test(`a key that is ended ${way} is not found any more within a second`, async (t) => {
      const id = await newKey();
      const ring = await open(t);
      await listening(ring, id);
      await revoke(id);
      await eventually('gone', async () => (await ring.find(id)) === undefined, 1_000);
    });
  }

  test('nor when the listening connection is cut at that moment', async (t) => {
    const id = await newKey();
    const ring = await open(t);
    await listening(ring, id);
    const pids = await listeners();
    assert.ok(pids.length > 0, 'somebody listens');
    for (const pid of pids) await database.pool.query('SELECT pg_terminate_backend($1)', [pid]);
    await revokeKey(database.pool, id);
    await eventually('gone', async () => (await ring.find(id)) === undefined, 1_000);
  });

  test('nor when that connection goes silent unseen, and the ring listens again when it can', async (t) => {
    const proxy = await databaseProxy(database.url);
    t.after(() => proxy.close());
    const [first, second] = [await newKey(), await newKey()];
    const ring = await open(t, { url: proxy.url });
    await listening(ring, first);
    proxy.silence();
    await revokeKey(database.pool, first);
    await eventually('gone', async () => (await ring.find(first)) === undefined, 1_000);
    await proxy.close();
    await proxy.open();
    await listening(ring, second);
    await revokeKey(database.pool, second);
    await eventually('gone', async () => (await ring.find(second)) === undefined, 1_000);
  });

  test('nor when it could never listen', async (t) => {
    const id = await newKey();
    const ring = await open(t, { url: 'postgres://u@127.0.0.1:1/d' });
    assert.equal((await ring.find(id))?.id, id);
    assert.equal((await ring.find(id))?.id, id);
    assert.equal(ring.questions(), 1, 'it is believed for a moment');
    await revokeKey(database.pool, id);
    await eventually('gone', async () => (await ring.find(id)) === undefined, 1_000);
  });

  test('a key that was read before it was revoked, and is told of afterwards, is not kept', async (t) => {
    const id = await newKey();
    let release = (): void => undefined;
    const gate: { held?: Promise<void> } = {};
    const query = async (statement: { text: string }) => {
      const result = await database.pool.query(statement);
      await gate.held;
      return result;
    };
    const ring = await open(t, { pool: { query } as unknown as Pool });
    await listening(ring, await newKey());
    gate.held = new Promise((resolve) => (release = resolve));
    const early = ring.find(id);
    await sleep(50);
    await revokeKey(database.pool, id);
    await sleep(200);
    release();
    assert.equal((await early)?.id, id, 'who asked before');
    assert.equal(await ring.find(id), undefined);
  });

  test('a key ends at its time, also while it is in memory', async (t) => {
    const ring = await open(t);
    await listening(ring, await newKey());
    const { rows } = await database.pool.query<{ at: string }>(`SELECT now() + interval '3 s' AS at`);
    const id = await newKey(rows[0]?.at ?? null);
    assert.equal((await ring.find(id))?.id, id);
    const before = ring.questions();
    await eventually('ended', async () => (await ring.find(id)) === undefined, 5_000);
    const more = ring.questions() - before;
    assert.ok(more <= 10, `it is kept in memory: ${more} questions`);
  });

  test('without a database nobody is let in once what was known is too old, and the error is the caller’s', async (t) => {
    const proxy = await databaseProxy(database.url);
    const pool = makePool(proxy.url, 'test', 2, () => undefined);
    t.after(async () => {
      await pool.end();
      await proxy.close();
    });
    const id = await newKey();
    const ring = await open(t, { url: proxy.url, pool });
    await listening(ring, id);
    await proxy.close();
    const refused = await eventually('an error', () => ring.find(id).then(() => undefined, String), 1_500);
    assert.match(refused, /ECONNREFUSED|terminated|ECONNRESET/);
    await proxy.open();
    await eventually('found', () =>
      ring.find(id).then(
        (key) => key?.id === id,
        () => false,
      ),
    );
  });

  const lastUsed = async (id: string) => (await showKey(database.pool, 'org_a', id))?.last_used_at ?? undefined;

  test('uses are noted a second later, once a minute', async (t) => {
    const [one, two] = [await newKey(), await newKey()];
    const ring = await open(t);
    for (let i = 0; i < 100; i++) ring.recordUse(one);
    ring.recordUse(two);
    const first = await eventually('noted', () => lastUsed(one));
    assert.equal(await lastUsed(two), first, 'together');
    ring.recordUse(one);
    await sleep(1_300);
    assert.equal(await lastUsed(one), first);
  });

  test('uses are noted at the end; those that could not be are told, and noted at the next', async (t) => {
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
    const ring = await open(t, { pool });
    await proxy.close();
    ring.recordUse(other);
    await eventually('told', () => ring.errors.length === 1);
    await proxy.open();
    await eventually('noted', () => {
      ring.recordUse(other);
      return lastUsed(other);
    });
  });
});
