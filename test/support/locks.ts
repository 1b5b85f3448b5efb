import type { TestContext } from 'node:test';
import type { Pool } from '../../src/store/postgres/pool.ts';
import { eventually } from './eventually.ts';

/** The number of statements of this database that wait for a lock. */
export async function countBlocked(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  );
  return rows[0]?.count ?? 0;
}

/** Waits until exactly this number of statements wait for a lock. It needs a free connection of the pool. */
export async function waitForBlocked(pool: Pool, count = 1): Promise<void> {
  await eventually(`${count} statements wait for a lock`, async () => (await countBlocked(pool)) === count);
}

/** Locks a table until the end of the test. @returns a function that unlocks it before */
export async function lockTable(
  t: TestContext,
  pool: Pool,
  table: string,
  mode: 'SHARE' | 'EXCLUSIVE' | 'ACCESS EXCLUSIVE',
): Promise<() => Promise<void>> {
  const client = await pool.connect();
  let isLocked = true;
  const unlock = async () => {
    if (!isLocked) return;
    isLocked = false;
    await client.query('ROLLBACK');
    client.release();
  };
  t.after(unlock);
  await client.query(`BEGIN; LOCK TABLE ${table} IN ${mode} MODE`);
  return unlock;
}
