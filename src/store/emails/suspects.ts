import { type Db, execute, queryValue } from '../postgres/pool.ts';
import { WORKER_LOCKS } from './attempt-workers.ts';

/**
 * Marks emails that may have crashed the process that delivered them, or may crash it now.
 * @param workers the workers of their open attempts, in their order: one that is connected to Postgres has not crashed
 */
export async function markSuspects(
  db: Db,
  ids: readonly string[],
  workers: readonly (number | null)[] = [],
): Promise<void> {
  if (ids.length === 0) return;
  await execute(db, {
    name: 'mark_suspects_of_workers',
    text: `UPDATE emails SET suspected_at = clock_timestamp() FROM unnest($1::text[], $2::integer[]) AS suspect(id, worker)
           WHERE emails.id = suspect.id AND emails.id = ANY ($1) AND suspected_at IS NULL
             AND (worker IS NULL OR pg_try_advisory_xact_lock_shared($3, worker))`,
    values: [ids, workers, WORKER_LOCKS],
  });
}

/** Unmarks emails whose delivery was attempted without a crash. */
export async function clearSuspects(db: Db, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await execute(db, {
    name: 'clear_suspects',
    text: 'UPDATE emails SET suspected_at = NULL WHERE id = ANY ($1) AND suspected_at IS NOT NULL',
    values: [ids],
  });
}

/** Returns the number of isolated processes that an email has crashed. */
export async function readCrashes(db: Db, id: string): Promise<number> {
  return (await queryValue<number>(db, 'SELECT crashes FROM emails WHERE id = $1', [id])) ?? 0;
}

/**
 * Records that an isolated process crashed just after it had begun to deliver an email. Idempotent.
 * @param crashes the number of crashes with this one
 */
export async function recordCrash(db: Db, id: string, crashes: number): Promise<void> {
  await execute(
    db,
    `UPDATE emails SET crashes = greatest(crashes, $2), suspected_at = coalesce(suspected_at, clock_timestamp()) WHERE id = $1`,
    [id, crashes],
  );
}
