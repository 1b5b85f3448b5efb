import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { describe, test, type TestContext } from 'node:test';
import { migrate, migrationNames, pendingMigrations } from '../../src/store/postgres/migrate.ts';
import { listPartitions } from '../../src/store/upkeep/partitions.ts';
import { createdAt, idTime } from '../../src/lib/ids.ts';
import { isUnreachable, makePool } from '../../src/store/postgres/pool.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { describeSchema } from '../support/schema.ts';

const database = await useDatabase();
const SUFFIX = randomBytes(4).toString('hex');

describe('migrating', () => {
  /** A database with nothing in it, dropped with the test. */
  async function emptyDatabase(t: TestContext) {
    const url = new URL(database.url);
    const name = `${url.pathname.slice(1)}_${randomBytes(4).toString('hex')}`;
    await database.pool.query(`CREATE DATABASE ${name} TEMPLATE template0`);
    url.pathname = name;
    const pool = makePool(url.href, 'test', 2, () => undefined);
    t.after(async () => {
      await pool.end();
      await database.pool.query(`DROP DATABASE ${name} WITH (FORCE)`);
    });
    return { url: url.href, pool };
  }

  /** Waits until a migration waits for a lock. @returns the pid of its connection */
  function untilWaiting(url: string): Promise<number> {
    return eventually('the migration waits', async () => {
      const { rows } = await database.pool.query<{ pid: number }>(
        `SELECT pid FROM pg_stat_activity WHERE application_name = 'sendwright migrate' AND wait_event_type = 'Lock'
           AND datname = $1`,
        [new URL(url).pathname.slice(1)],
      );
      return rows.length === 1 ? rows[0]?.pid : undefined;
    });
  }

  test('applies every migration once, in the order of their names', async (t) => {
    const { url, pool } = await emptyDatabase(t);
    const names = await migrationNames();
    assert.deepEqual(names, [...names].sort());
    assert.ok(names.length > 0);
    assert.deepEqual(await migrate(url), names);
    assert.deepEqual(await migrate(url), []);
    const { rows } = await pool.query<{ name: string }>('SELECT name FROM migrations ORDER BY name');
    assert.deepEqual(
      rows.map(({ name }) => name),
      names,
    );
  });

  test('several processes apply each migration once', async (t) => {
    const { url } = await emptyDatabase(t);
    const applied = await Promise.all([migrateInProcess(url), migrateInProcess(url)]);
    assert.deepEqual(applied.flat(), await migrationNames());
  });

  test('a migration whose connection is terminated fails as unreachable, and does not block a later one', async (t) => {
    const { url, pool } = await emptyDatabase(t);
    // The table of migrations cannot be read while this transaction holds its lock, so the migration waits in the middle.
    await migrate(url);
    await pool.query('DELETE FROM migrations; DROP TABLE email_bodies');
    const client = await pool.connect();
    await client.query('BEGIN; LOCK TABLE migrations');
    const migrating = migrate(url);
    const outcome = migrating.then(
      () => undefined,
      (error: unknown) => error,
    );
    const pid = await untilWaiting(url);
    await database.pool.query('SELECT pg_terminate_backend($1)', [pid]);
    assert.ok(isUnreachable(await outcome));
    await client.query('ROLLBACK');
    client.release();
    await pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
    assert.deepEqual(await migrate(url), await migrationNames());
  });

  test('lets others read while it waits for a lock on a table, and continues afterwards', async (t) => {
    const { url, pool } = await emptyDatabase(t);
    await migrate(url);
    const names = await migrationNames();
    // One that changes a table which is there: the second one does.
    await pool.query(`DROP SCHEMA public CASCADE; CREATE SCHEMA public`);
    const client = await pool.connect();
    const [first = ''] = names;
    await client.query('BEGIN');
    await client.query(await readFile(new URL(`../../src/store/migrations/${first}`, import.meta.url), 'utf8'));
    await client.query(
      `CREATE TABLE migrations (name text COLLATE "C" PRIMARY KEY, applied_at timestamptz(3) DEFAULT now())`,
    );
    await client.query('INSERT INTO migrations VALUES ($1)', [first]);
    await client.query('COMMIT');
    await client.query('BEGIN; SELECT FROM outbox');
    const migrating = migrate(url);
    await untilWaiting(url);
    await pool.query(`SET statement_timeout = '15s'`);
    await pool.query('SELECT FROM outbox');
    await client.query('COMMIT');
    client.release();
    assert.deepEqual(await migrating, names.slice(1));
  });

  test('is repeated after a deadlock with a transaction that uses its tables in another order', async (t) => {
    const { url, pool } = await emptyDatabase(t);
    const names = await migrationNames();
    const last = '0036-timeline-details.sql';
    await migrate(url, names.slice(0, names.indexOf(last)));
    const client = await pool.connect();
    // The migration is the one that finds the deadlock, after a second.
    await client.query(`SET deadlock_timeout = '10min'; BEGIN; SELECT FROM emails`);
    const migrating = migrate(url, [last]);
    await untilWaiting(url);
    await client.query('SELECT FROM email_events; COMMIT');
    client.release();
    assert.deepEqual(await migrating, [last]);
  });

  test('tables of emails become partitions with their rows, while the version before reads and writes them', async (t) => {
    const { url, pool } = await emptyDatabase(t);
    const names = await migrationNames();
    await migrate(url, names.slice(0, names.indexOf('0033-partition-functions.sql')));
    const id = `em_${idTime(Date.now())}${'0'.repeat(16)}`;
    const emails = `INSERT INTO emails (id, org_id, "from", "to", subject, marketing, tags, headers, status, created_at, last_event_at, workflow_id)
      SELECT id, 'org_1', 'a@b.example', '[]', '', false, '[]', '{}', 'delivered', now(), now(), id FROM unnest($1::text[]) AS id`;
    const events = `INSERT INTO email_events (email_id, id, type, created_at) SELECT id, id, 'email.queued', now() FROM unnest($1::text[]) AS id`;
    await pool.query(`INSERT INTO organizations (id, name) VALUES ('org_1', 'Example')`);
    await pool.query(emails, [[id]]);
    await pool.query(events, [[id]]);
    await pool.query(`CREATE ROLE reader_${SUFFIX}; GRANT SELECT ON emails TO reader_${SUFFIX}`);
    t.after(() => database.pool.query(`DROP ROLE reader_${SUFFIX}`));
    const client = await pool.connect();
    // The plan of a statement that the version before has prepared must survive.
    const find = { name: 'find', text: 'SELECT id FROM emails WHERE id = ANY ($1) ORDER BY id' };
    await client.query({ ...find, values: [[id]] });
    await client.query('BEGIN; SELECT FROM email_events');
    const migrating = migrate(url);
    await untilWaiting(url);
    const next = `${id.slice(0, -1)}1`;
    await client.query(emails, [[next]]);
    await client.query(events, [[next]]);
    await client.query('COMMIT');
    await migrating;
    const { rows } = await client.query<{ id: string }>({ ...find, values: [[id, next]] });
    assert.deepEqual(
      rows.map((row) => row.id),
      [id, next],
    );
    client.release();
    const [first, second] = await listPartitions(pool, 'emails');
    assert.ok(first && second);
    assert.equal(first.first_id, null);
    const daysAhead = (createdAt(`${first.end_id}${'0'.repeat(16)}`) - Date.now()) / 86_400_000;
    assert.ok(daysAhead > 28 && daysAhead <= 30, `${daysAhead} days`);
    assert.equal(second.first_id, first.end_id);
    const { rows: privileges } = await pool.query(
      `SELECT has_table_privilege('reader_${SUFFIX}', 'emails', 'SELECT') AS reads`,
    );
    assert.deepEqual(privileges, [{ reads: true }]);
    const expected = await readFile(new URL('../../src/store/schema.txt', import.meta.url), 'utf8');
    // Version 0.1.0 needs these indexes, which a new installation does not have.
    await pool.query('DROP INDEX emails_of_batch; DROP INDEX email_events_of_email');
    await pool.query('CREATE INDEX email_events_by_email ON email_events (email_id)');
    await pool.query(`COMMENT ON INDEX email_events_by_email IS 'The timeline of one email.'`);
    assert.equal(await describeSchema(pool), expected);
    await pool.query(`REVOKE SELECT ON emails, emails_first FROM reader_${SUFFIX}`);
  });

  test('pendingMigrations returns all for an empty database and none for a current one', async (t) => {
    const { url, pool } = await emptyDatabase(t);
    assert.deepEqual(await pendingMigrations(pool, await migrationNames()), await migrationNames());
    await migrate(url);
    assert.deepEqual(await pendingMigrations(pool, await migrationNames()), []);
    await pool.query(`UPDATE migrations SET name = 'later ' || name`);
    assert.deepEqual(await pendingMigrations(pool, await migrationNames()), await migrationNames());
  });

  test('fails when the database cannot be reached', async () => {
    const nowhere = 'postgres://u@127.0.0.1:1/d';
    await assert.rejects(migrate(nowhere), isUnreachable);
    const pool = makePool(nowhere, 'test', 1, () => undefined);
    await assert.rejects(pendingMigrations(pool, await migrationNames()), isUnreachable);
    await pool.end();
  });
});

async function migrateInProcess(url: string): Promise<string[]> {
  const code = `import { migrate } from ${JSON.stringify(new URL('../../src/store/postgres/migrate.ts', import.meta.url).href)};
    console.log(JSON.stringify(await migrate(${JSON.stringify(url)})));`;
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [printed] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  assert.equal(child.exitCode, 0);
  return JSON.parse(printed) as string[];
}
