import type { Logger } from 'pino';
import { makePool, type Pool, type Timeouts } from '../../store/postgres/pool.ts';

/** @param name the `application_name` of the connections in `pg_stat_activity` */
export function openPool(
  { DATABASE_URL }: { readonly DATABASE_URL: string },
  log: Logger,
  name: string,
  max: number,
  timeouts?: Timeouts,
): Pool {
  return makePool(DATABASE_URL, name, max, (error) => log.warn({ err: error }, 'lost a database connection'), timeouts);
}

/**
 * Logs at startup why Postgres refuses our connections. A proxy or a managed Postgres that rejects one of our connection
 * options refuses all connections, which would otherwise look like an unavailable database. The process keeps running, since
 * the database may become available.
 */
export async function checkDatabase(pool: Pool, log: Logger): Promise<void> {
  try {
    await pool.query('SELECT 1');
  } catch (error) {
    log.error({ err: error }, 'first database connection failed');
  }
}
