import pg from 'pg';

/** Anything that runs a statement: a pool, or one client inside its caller's transaction. */
export type Db = Pick<pg.ClientBase, 'query'>;
export type Pool = pg.Pool;

/** Times leave the database as the API writes them: UTC with milliseconds. */
const types = new pg.TypeOverrides();
types.setTypeParser(pg.types.builtins.TIMESTAMPTZ, (text) => new Date(text).toISOString());

/**
 * A pool of connections. Connecting gives up after 5 s, a statement after 60 s; lost connections are replaced.
 * @param name what the connections are called in pg_stat_activity
 * @param onIdleError told of connections that broke while idle
 */
export function makePool(url: string, name: string, max: number, onIdleError: (error: Error) => void): Pool {
  const pool = new pg.Pool({
    connectionString: url,
    application_name: `sendwright ${name}`,
    max,
    types,
    connectionTimeoutMillis: 5_000,
    statement_timeout: 60_000,
    keepAlive: true,
  });
  pool.on('error', onIdleError);
  return pool;
}

/** Runs `work` in one transaction: committed when it returns, rolled back when it throws. */
export async function transaction<T>(pool: Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    await client.query('BEGIN');
    const result = await work(client);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK').catch((rollbackError: unknown) => {
      broken = rollbackError as Error;
    });
    throw error;
  } finally {
    client.release(broken);
  }
}

/** SQLSTATE classes and codes that say "not now": connection lost, server starting or stopping, out of resources. */
const UNREACHABLE_STATES = /^(?:08|53|57P0[1-4]|57014|25P03)/;
const UNREACHABLE_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
  'ENOENT',
]);

/** Whether an error from this folder says that the database cannot be reached or used now, and may be later. */
export function isUnreachable(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isUnreachable);
  if (!(error instanceof Error)) return false;
  const code = (error as { code?: unknown }).code;
  if (typeof code === 'string') return UNREACHABLE_CODES.has(code) || UNREACHABLE_STATES.test(code);
  return /^(?:Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error)/.test(
    error.message,
  );
}

/** Whether a statement failed because what it would add is there already (SQLSTATE 23505). */
export function isDuplicate(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '23505';
}
