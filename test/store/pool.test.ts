import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test, type TestContext } from 'node:test';
import {
  afterCommit,
  isDuplicate,
  isUnreachable,
  makePool,
  type Pool,
  snapshot,
  transaction,
} from '../../src/store/postgres/pool.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { proxiedPool } from './proxy.ts';
import { startTlsDatabase } from './tls-database.ts';

const database = await useDatabase();
const { pool } = database;

/** A pool that ends with the test. */
function poolAt(t: TestContext, url: string, max = 3): Pool {
  const made = makePool(url, 'test', max, () => undefined);
  t.after(() => made.end());
  return made;
}

function withParameters(url: string, parameters: Record<string, string>): string {
  const changed = new URL(url);
  for (const [name, value] of Object.entries(parameters)) changed.searchParams.set(name, value);
  return changed.href;
}

const pidOf = async (db: Pick<Pool, 'query'>) =>
  ((await db.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0] as { pid: number }).pid;

async function failure(work: Promise<unknown>): Promise<Error> {
  return work.then(
    () => assert.fail('it did not fail'),
    (error: unknown) => error as Error,
  );
}

describe('isUnreachable returns true for a database that', { concurrency: true }, () => {
  const unreachable = async (work: Promise<unknown>) => {
    const error = await failure(work);
    assert.ok(isUnreachable(error), `${error.name} ${String((error as { code?: unknown }).code)}: ${error.message}`);
  };

  for (const [what, url] of [
    ['refuses connections by its address', 'postgres://u@127.0.0.1:1/d'],
    ['refuses connections by its name', 'postgres://u@localhost:1/d'],
    ['has a name that cannot be resolved', 'postgres://u@nobody.invalid/d'],
    ['has a socket that does not exist', 'postgres://u@/d?host=/nowhere'],
  ] as const)
    test(what, async (t) => unreachable(poolAt(t, url).query('SELECT 1')));

  for (const [what, onConnection] of [
    ['accepts the connection and sends nothing', () => undefined],
    ['hangs up immediately', (socket: Socket) => void socket.destroy()],
  ] as const)
    test(what, async (t) => {
      const server = createServer(onConnection).listen(0, '127.0.0.1');
      await once(server, 'listening');
      t.after(() => server.close());
      const { port } = server.address() as AddressInfo;
      await unreachable(poolAt(t, `postgres://u@127.0.0.1:${port}/d?connectionTimeoutMillis=300`).query('SELECT 1'));
    });

  for (const [what, answer] of [
    ['has a certificate that is not trusted', 'S'],
    ['does not support TLS', 'N'],
  ] as const)
    test(what, async (t) => unreachable(poolAt(t, await startTlsDatabase(t, answer)).query('SELECT 1')));

  test('is read-only since a fail-over', async (t) => {
    const url = withParameters(database.url, { options: '-c default_transaction_read_only=on' });
    await unreachable(poolAt(t, url).query('CREATE TABLE refused ()'));
  });

  test('ends a connection in the middle of a statement', async (t) => {
    const one = poolAt(t, database.url);
    const client = await one.connect();
    client.on('error', () => undefined);
    const pid = await pidOf(client);
    const sleeping = unreachable(client.query('SELECT pg_sleep(10)'));
    await pool.query('SELECT pg_terminate_backend($1)', [pid]);
    await sleeping;
    await unreachable(client.query('SELECT 1'));
    client.release(true);
  });

  test('is cut off in the middle of a statement', async (t) => {
    const { proxy, pool: one } = await proxiedPool(t, database.url, 3);
    await one.query('SELECT 1');
    const sleeping = unreachable(one.query('SELECT pg_sleep(10)'));
    await sleep(200);
    proxy.cut();
    await sleeping;
    assert.equal((await one.query('SELECT 1')).rowCount, 1);
  });

  test('falls silent in the middle of a transaction without a network error', async (t) => {
    const url = withParameters(database.url, { query_timeout: '3000', connectionTimeoutMillis: '3000' });
    const { proxy, pool: one } = await proxiedPool(t, url, 3);
    const statements: string[] = [];
    const work = transaction(one, async (client) => {
      const query = client.query.bind(client) as (text: string) => Promise<unknown>;
      Object.assign(client, {
        query: (text: string) => {
          statements.push(text);
          return query(text);
        },
      });
      proxy.silence();
      await client.query('SELECT 1');
    });
    await unreachable(work);
    assert.deepEqual(statements, ['SELECT 1'], 'it does not wait for a rollback too');
    await unreachable(one.query('SELECT 1'));
    await proxy.close();
    await proxy.open();
    assert.equal((await one.query('SELECT 1')).rowCount, 1, 'the connection that fell silent is not used again');
  });

  test('ends a connection while the pool hands it out', async (t) => {
    const own = poolAt(t, database.url, 1);
    for (const isNew of [true, false]) {
      await new Promise<void>((resolve, reject) => {
        own.connect((error, client, release) => {
          if (!client) {
            reject(error ?? new Error('there is no connection'));
            return;
          }
          // As the driver does it before the promise of the caller is resolved.
          assert.ok(client.emit('error', new Error('terminating connection')), `has a listener, new: ${isNew}`);
          release();
          resolve();
        });
      });
    }
  });

  test('takes too long over a statement', async (t) => {
    await unreachable(
      poolAt(t, withParameters(database.url, { statement_timeout: '100' })).query('SELECT pg_sleep(5)'),
    );
  });

  test('has no connection left in our pool', async (t) => {
    const one = poolAt(t, database.url, 1);
    const client = await one.connect();
    await unreachable(one.query('SELECT 1'));
    client.release();
  });

  for (const [code, what] of [
    ['53300', 'has no connection left'],
    ['53100', 'has no space left'],
    ['57P01', 'is shut down'],
    ['57P02', 'has crashed'],
    ['57P03', 'starts up'],
    ['40P01', 'ends a deadlock'],
    ['40001', 'reports a serialization failure'],
    ['08006', 'lost its connection'],
    ['28P01', 'refuses a password that was replaced'],
    ['28000', 'refuses the user'],
    ['55P03', 'does not get a lock in time'],
    ['25P03', 'ended a transaction that was idle for too long'],
  ])
    test(`${what} (${code})`, async () => {
      await unreachable(pool.query(`DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '${code}'; END $$`));
    });
});

describe('isUnreachable returns false for an error that a retry does not fix:', { concurrency: true }, () => {
  for (const [what, statement, parameters] of [
    ['a violated constraint', 'INSERT INTO organizations (id, name) VALUES (1, $1)', ['']],
    ['an invalid statement', 'SELEC', []],
    ['an invalid value', 'SELECT $1::int', ['x']],
    ['a missing table', 'SELECT FROM nothing', []],
  ] as const)
    test(what, async () => {
      assert.equal(isUnreachable(await failure(pool.query(statement, [...parameters]))), false);
    });

  test('a missing database', async (t) => {
    const url = new URL(database.url);
    url.pathname = 'nothing';
    assert.equal(isUnreachable(await failure(poolAt(t, url.href).query('SELECT 1'))), false);
  });

  test('an error that is not from the driver', () => {
    for (const error of [new Error('Oops'), new TypeError('x'), 'Connection terminated', undefined, { code: '08006' }])
      assert.equal(isUnreachable(error), false);
  });
});

describe('a transaction', { concurrency: true }, () => {
  const insert = (db: Pick<Pool, 'query'>, id: string) =>
    db.query(`INSERT INTO organizations (id, name) VALUES ($1, 'x')`, [id]);
  const has = async (id: string) => (await pool.query('SELECT FROM organizations WHERE id = $1', [id])).rowCount === 1;

  test('is committed when its function returns', async () => {
    const result = await transaction(pool, async (client) => {
      await insert(client, 'org_committed');
      return 7;
    });
    assert.deepEqual([result, await has('org_committed')], [7, true]);
  });

  test('is rolled back when its function throws, and its connection is reused', async (t) => {
    const one = poolAt(t, database.url, 1);
    const pid = await pidOf(one);
    const work = transaction(one, async (client) => {
      await insert(client, 'org_thrown');
      throw new Error('no');
    });
    await assert.rejects(work, { message: 'no' });
    assert.deepEqual([await has('org_thrown'), await pidOf(one)], [false, pid]);
  });

  test('is rolled back when a statement fails, with that statement’s error', async () => {
    await insert(pool, 'org_twice');
    const work = transaction(pool, async (client) => {
      await insert(client, 'org_once');
      await insert(client, 'org_twice');
    });
    const error = await failure(work);
    assert.ok(isDuplicate(error));
    assert.equal(await has('org_once'), false);
  });

  test('fails with the error of the statement that failed, not of those that were sent behind it', async () => {
    const deep = async (work: () => Promise<unknown>, depth = 5): Promise<unknown> =>
      depth === 0 ? work() : [await deep(work, depth - 1)];
    await insert(pool, 'org_again');
    for (const isCommitted of [false, true]) {
      const work = transaction(pool, async (client, commitWith) => {
        const statements = Promise.all([deep(() => insert(client, 'org_again')), insert(client, 'org_behind')]);
        await (isCommitted ? commitWith(statements) : statements);
      });
      assert.ok(isDuplicate(await failure(work)));
      assert.equal(await has('org_behind'), false);
    }
  });

  for (const [when, isIdle] of [
    ['between two statements fails at the next one', false],
    ['after its last statement fails at its commit', true],
  ] as const)
    test(`whose connection breaks ${when}, and the pool opens another connection`, async (t) => {
      const one = poolAt(t, database.url, 1);
      const work = transaction(one, async (client) => {
        await insert(client, `org_broken_${isIdle}`);
        await pool.query('SELECT pg_terminate_backend($1)', [await pidOf(client)]);
        await sleep(200);
        if (!isIdle) await client.query('SELECT 1');
      });
      assert.ok(isUnreachable(await failure(work)));
      assert.deepEqual([await has(`org_broken_${isIdle}`), (await one.query('SELECT 1')).rowCount], [false, 1]);
    });

  test('that cannot begin fails', async (t) => {
    const { proxy, pool: one } = await proxiedPool(t, database.url, 1);
    await one.query('SELECT 1');
    await proxy.close();
    assert.ok(isUnreachable(await failure(transaction(one, async () => 1))));
    await proxy.open();
    assert.equal(await transaction(one, async () => 1), 1);
  });
});

describe('a pool', { concurrency: true }, () => {
  test('reports idle connections that break, and replaces them', async (t) => {
    const reported: string[] = [];
    const one = makePool(database.url, 'listener', 1, (error) => reported.push(error.message));
    t.after(() => one.end());
    await pool.query('SELECT pg_terminate_backend($1)', [await pidOf(one)]);
    await eventually('it is reported', () => reported.length > 0);
    assert.deepEqual(reported, ['terminating connection due to administrator command']);
    assert.equal((await one.query('SELECT 1')).rowCount, 1);
  });

  test('sets the timeouts that release the locks of a client that hangs or disappears', async () => {
    const { rows } = await pool.query<{ name: string; setting: string; unit: string | null }>(
      `SELECT name, reset_val AS setting, unit FROM pg_settings
       WHERE name IN ('idle_in_transaction_session_timeout', 'lock_timeout') OR name LIKE 'tcp\\_%' ORDER BY name`,
    );
    assert.deepEqual(
      rows.map(({ name, setting, unit }) => `${name} = ${setting} ${unit ?? ''}`.trim()),
      [
        'idle_in_transaction_session_timeout = 45000 ms',
        'lock_timeout = 20000 ms',
        'tcp_keepalives_count = 3',
        'tcp_keepalives_idle = 10 s',
        'tcp_keepalives_interval = 5 s',
        'tcp_user_timeout = 25000 ms',
      ],
    );
  });

  test('returns times as UTC with milliseconds in any session time zone', async () => {
    await transaction(pool, async (client) => {
      await client.query(`SET LOCAL timezone = 'Asia/Kathmandu'`);
      const { rows } = await client.query(`SELECT '2026-03-01T09:30:00.123456+02:00'::timestamptz AS at`);
      assert.deepEqual(rows, [{ at: '2026-03-01T07:30:00.123Z' }]);
    });
  });
});

test('only a unique violation is a duplicate', async () => {
  const codes = ['23505', '23514', '23503'];
  const errors = await Promise.all(
    codes.map((code) => failure(pool.query(`DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '${code}'; END $$`))),
  );
  assert.deepEqual(errors.map(isDuplicate), [true, false, false]);
  assert.equal(isDuplicate(new Error('23505')), false);
});

describe('afterCommit', () => {
  test('runs callbacks once, in their order, after the commit, and none after a rollback', async () => {
    const done: string[] = [];
    await transaction(pool, async (client) => {
      await client.query('CREATE TABLE committed ()');
      afterCommit(client, () => done.push('first'));
      afterCommit(client, () => done.push('second'));
      assert.deepEqual(done, []);
    });
    assert.deepEqual(done, ['first', 'second']);
    const failing = transaction(pool, async (client) => {
      afterCommit(client, () => done.push('never'));
      throw new Error('rolled back');
    });
    await assert.rejects(failing, /rolled back/);
    await transaction(pool, async () => undefined);
    assert.deepEqual(done, ['first', 'second']);
  });

  test('runs callbacks immediately outside a transaction', async () => {
    const done: string[] = [];
    afterCommit(pool, () => done.push('pool'));
    const client = await pool.connect();
    afterCommit(client, () => done.push('client'));
    client.release();
    assert.deepEqual(done, ['pool', 'client']);
  });
});

test('a snapshot reads as of one instant what another connection changes meanwhile', async () => {
  await pool.query('CREATE TABLE snapshot_counts (n int)');
  await pool.query('INSERT INTO snapshot_counts VALUES (1)');
  const read = async (db: Pick<Pool, 'query'>) =>
    (await db.query<{ n: number }>('SELECT n FROM snapshot_counts')).rows[0]?.n;
  const counts = await snapshot(pool, async (client) => {
    const first = await read(client);
    await pool.query('UPDATE snapshot_counts SET n = 2');
    return [first, await read(client)];
  });
  assert.deepEqual(counts, [1, 1]);
  assert.equal(await read(pool), 2);
});
