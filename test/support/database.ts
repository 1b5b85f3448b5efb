import { randomBytes } from 'node:crypto';
import { after } from 'node:test';
import { migrate } from '../../src/store/postgres/migrate.ts';
import pg from 'pg';
import { makePool, type Pool } from '../../src/store/postgres/pool.ts';
import { provided } from './provided.ts';

export interface TestDatabase {
  readonly url: string;
  readonly pool: Pool;
  /** Ends the pool and drops the database, also with open connections. */
  readonly drop: () => Promise<void>;
}

/** The advisory lock under which one process creates the template. */
const LOCK = 5_120_877_301;

/**
 * A database of this version's schema for one test file: a copy of a template that is migrated once per run.
 * @param connections most connections of `pool`
 */
export async function testDatabase(connections = 5): Promise<TestDatabase> {
  const server = provided('TEST_DATABASE_URL');
  const run = provided('TEST_RUN');
  const name = `test_${run}_${randomBytes(6).toString('hex')}`;
  const template = `test_${run}_template`;
  await asAdmin(server, async (admin) => {
    await makeTemplate(admin, server, template);
    await admin.query(`CREATE DATABASE ${name} TEMPLATE ${template}`);
  });
  const url = databaseUrl(server, name);
  const pool = makePool(url, 'test', connections, () => undefined);
  // A busy machine may need more than production's five seconds until a connection is free. Parameters of the URL do not
  // change how long the pool waits.
  pool.options.connectionTimeoutMillis = 60_000;
  return {
    url,
    pool,
    async drop() {
      await pool.end();
      await asAdmin(server, (admin) => admin.query(`DROP DATABASE ${name} WITH (FORCE)`));
    },
  };
}

/** The database of a test file, dropped after its tests: `const { pool } = await useDatabase();` at the top level. */
export async function useDatabase(connections?: number): Promise<Omit<TestDatabase, 'drop'>> {
  const database = await testDatabase(connections);
  after(() => database.drop());
  return database;
}

async function makeTemplate(admin: pg.Client, server: string, template: string): Promise<void> {
  const isThere = async () => {
    const { rowCount } = await admin.query('SELECT FROM pg_database WHERE datname = $1', [template]);
    return rowCount === 1;
  };
  if (await isThere()) return;
  await admin.query('SELECT pg_advisory_lock($1)', [LOCK]);
  try {
    if (await isThere()) return;
    // Under another name until it is complete.
    const unfinished = `${template}_unfinished`;
    await admin.query(`CREATE DATABASE ${unfinished}`);
    await migrate(databaseUrl(server, unfinished));
    await admin.query(`ALTER DATABASE ${unfinished} RENAME TO ${template}`);
  } finally {
    await admin.query('SELECT pg_advisory_unlock($1)', [LOCK]);
  }
}

/** Drops the databases of a run in a shared server. */
export async function dropRun(server: string, run: string): Promise<void> {
  await asAdmin(server, async (admin) => {
    const { rows } = await admin.query<{ name: string }>(
      'SELECT datname AS name FROM pg_database WHERE starts_with(datname, $1)',
      [`test_${run}_`],
    );
    for (const { name } of rows) await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
  });
}

/** Without the time-outs of production: many test files connect and wait for the template at the same time. */
async function asAdmin<T>(server: string, work: (admin: pg.Client) => Promise<T>): Promise<T> {
  const admin = new pg.Client({ connectionString: server });
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.end();
  }
}

function databaseUrl(server: string, name: string): string {
  const url = new URL(server);
  url.pathname = name;
  return url.href;
}
