import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

const FOLDER = new URL('../migrations/', import.meta.url);
/** The advisory lock that lets one process migrate while others wait; an arbitrary number that only migrations use. */
const MIGRATION_LOCK_ID = 7_301_956_218;
/**
 * The previous version still serves requests during a migration. While a migration waits for a table that a long transaction
 * has locked, all other statements queue behind it. It therefore gives up after this time and retries.
 */
const TABLE_LOCK_TIMEOUT_MS = 2_000;
const RETRY_INTERVAL_MS = 1_000;
const MAX_ATTEMPTS = 30;
/**
 * First line of a migration whose statements run one by one, outside of a transaction, as `CREATE INDEX CONCURRENTLY` needs.
 * Such a migration must succeed when it is repeated after a partial failure.
 */
const WITHOUT_TRANSACTION = '-- without a transaction';
const LOCK_POLL_MS = 200;
/** SQLSTATEs of a lock timeout, and of a deadlock with a transaction that uses the same tables in another order. */
const LOCK_FAILURES: readonly unknown[] = ['55P03', '40P01'];

/**
 * Applies the migrations that a database lacks, in the order of their names, each in a transaction of its own.
 * Safe to run from several processes concurrently.
 * @param names all of them by default; tests stop earlier
 * @returns the names applied now
 */
export async function migrate(databaseUrl: string, names?: readonly string[]): Promise<string[]> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: 'sendwright migrate' });
  // The current or next statement fails with this error.
  client.on('error', () => undefined);
  await client.connect();
  try {
    await takeLock(client);
    await client.query(
      `CREATE TABLE IF NOT EXISTS migrations (
         name       text COLLATE "C" PRIMARY KEY,
         applied_at timestamptz(3) NOT NULL DEFAULT now()
       );
       COMMENT ON INDEX migrations_pkey IS 'Keeps a migration from being applied twice.'`,
    );
    const { rows } = await client.query<{ name: string }>('SELECT name FROM migrations');
    const done = new Set(rows.map((row) => row.name));
    const pending = (names ?? (await migrationNames())).filter((name) => !done.has(name));
    for (const name of pending) await apply(client, name);
    return pending;
  } finally {
    await client.end();
  }
}

/** Polls, because a process that waits inside a statement holds a snapshot for which CREATE INDEX CONCURRENTLY would wait. */
async function takeLock(client: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ taken: boolean }>('SELECT pg_try_advisory_lock($1) AS taken', [
      MIGRATION_LOCK_ID,
    ]);
    if (rows[0]?.taken) return;
    await sleep(LOCK_POLL_MS);
  }
}

async function applyWithoutTransaction(client: pg.Client, name: string, sql: string): Promise<void> {
  const statements = sql.split(/;\s*$/m).filter((statement) => statement.trim() !== '');
  for (const statement of statements) await client.query(statement);
  await client.query('INSERT INTO migrations (name) VALUES ($1)', [name]);
}

async function apply(client: pg.Client, name: string): Promise<void> {
  const sql = await readFile(new URL(name, FOLDER), 'utf8');
  if (sql.startsWith(WITHOUT_TRANSACTION)) return applyWithoutTransaction(client, name, sql);
  for (let attempt = 1; ; attempt++) {
    try {
      await client.query(`BEGIN; SET LOCAL lock_timeout = ${TABLE_LOCK_TIMEOUT_MS}`);
      await client.query(sql);
      await client.query('INSERT INTO migrations (name) VALUES ($1)', [name]);
      await client.query('COMMIT');
      return;
    } catch (error) {
      if (!LOCK_FAILURES.includes((error as { code?: string }).code) || attempt === MAX_ATTEMPTS) throw error;
      await client.query('ROLLBACK');
      await sleep(RETRY_INTERVAL_MS);
    }
  }
}

/** The names of all migrations, in the order they apply. */
export async function migrationNames(): Promise<string[]> {
  return (await readdir(FOLDER)).filter((name) => name.endsWith('.sql')).sort();
}

/**
 * Returns the migrations that the database lacks; a process checks them before it serves. Throws if it is unreachable.
 * @param names as `migrationNames` returns them
 */
export async function pendingMigrations(
  db: Pick<pg.ClientBase, 'query'>,
  names: readonly string[],
): Promise<readonly string[]> {
  const found = await db.query<{ table: string | null }>(`SELECT to_regclass('migrations') AS table`);
  if (found.rows[0]?.table == null) return names;
  const { rows } = await db.query<{ name: string }>(
    `SELECT name FROM unnest($1::text[]) AS needed(name) WHERE name NOT IN (SELECT name FROM migrations)`,
    [names],
  );
  return rows.map((row) => row.name);
}
