import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

const FOLDER = new URL('../migrations/', import.meta.url);
/** Any number that only migrations use: the advisory lock that lets one process migrate while others wait. */
const LOCK = 7_301_956_218;
/**
 * The version before still serves while this runs. A migration that waits for a table behind a long transaction has all
 * others wait behind itself: so it lets them pass, and tries again.
 */
const LOCK_WITHIN = '2s';
const PAUSE = 1_000;
const TRIES = 30;
/**
 * First line of a migration whose statements run one by one, outside of a transaction: `CREATE INDEX CONCURRENTLY` lets
 * writes pass. It must succeed when it is run again after a failure in the middle.
 */
const WITHOUT_TRANSACTION = '-- without a transaction';
/** Milliseconds between two tries to get the advisory lock. */
const LOCK_POLL_MS = 200;
/** SQLSTATE of a lock that was not to be had in time. */
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * Applies the migrations that a database lacks, in the order of their names, each in a transaction of its own.
 * Safe to run from several processes concurrently.
 * @param names all of them by default; tests stop earlier
 * @returns the names applied now
 */
export async function migrate(databaseUrl: string, names?: readonly string[]): Promise<string[]> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: 'sendwright migrate' });
  // The statement that is under way, or else the next one, fails with it.
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
    const { rows } = await client.query<{ taken: boolean }>('SELECT pg_try_advisory_lock($1) AS taken', [LOCK]);
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
  for (let left = TRIES; ; left--) {
    try {
      await client.query(`BEGIN; SET LOCAL lock_timeout = '${LOCK_WITHIN}'`);
      await client.query(sql);
      await client.query('INSERT INTO migrations (name) VALUES ($1)', [name]);
      await client.query('COMMIT');
      return;
    } catch (error) {
      if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE || left === 1) throw error;
      await client.query('ROLLBACK');
      await sleep(PAUSE);
    }
  }
}

/** The names of all migrations, in the order they apply. */
export async function migrationNames(): Promise<string[]> {
  return (await readdir(FOLDER)).filter((name) => name.endsWith('.sql')).sort();
}

/**
 * What a process needs to know before it serves: the migrations the database lacks. Throws when it is unreachable.
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
