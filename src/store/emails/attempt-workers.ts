import type { Attempt } from './attempts.ts';
import { columns } from '../postgres/columns.ts';
import { type Db, execute, queryRows } from '../postgres/pool.ts';

/** The class of the advisory locks of workers; also in the function `require_worker_session`. */
export const WORKER_LOCKS = 1_400_332_919;

type AttemptKey = Pick<Attempt, 'message_id' | 'n'>;

/**
 * Takes the lock of a worker for as long as the session of `client` lives. Waits while an earlier session of the worker has not ended.
 */
export async function lockWorker(client: Db, worker: number): Promise<void> {
  await execute(client, 'SELECT pg_advisory_lock($1, $2)', [WORKER_LOCKS, worker]);
}

/**
 * Records that the last bytes of messages are about to leave. Commit it before they do.
 * @returns true for each attempt that is still open, in their order: the messages of the others must not be completed, since another
 * worker has ended their attempts
 */
export async function recordHandOvers(db: Db, attempts: readonly AttemptKey[]): Promise<boolean[]> {
  const open = await queryRows<AttemptKey>(db, {
    name: 'record_hand_overs',
    text: `UPDATE attempts AS attempt SET handed_over = true
           FROM unnest($1::text[], $2::integer[]) AS complete(message_id, n)
           WHERE attempt.message_id = complete.message_id AND attempt.n = complete.n AND attempt.message_id = ANY ($1)
             AND attempt.outcome IS NULL
           RETURNING attempt.message_id, attempt.n`,
    values: columns(attempts, 'message_id', 'n'),
  });
  const keys = new Set(open.map(keyOf));
  return attempts.map((attempt) => keys.has(keyOf(attempt)));
}

/** Ends attempts whose messages were not handed over, so that they cannot be any more. @returns the ids of the messages */
export async function endUnsentAttempts(
  db: Db,
  attempts: readonly AttemptKey[],
  detail: string,
): Promise<ReadonlySet<string>> {
  if (attempts.length === 0) return new Set();
  const ended = await queryRows<AttemptKey>(db, {
    name: 'end_unsent_attempts',
    text: `UPDATE attempts AS attempt SET outcome = 'again', detail = $3, ended_at = clock_timestamp()
           FROM unnest($1::text[], $2::integer[]) AS unsent(message_id, n)
           WHERE attempt.message_id = unsent.message_id AND attempt.n = unsent.n AND attempt.message_id = ANY ($1)
             AND attempt.outcome IS NULL AND attempt.handed_over = false
           RETURNING attempt.message_id, attempt.n`,
    values: [...columns(attempts, 'message_id', 'n'), detail],
  });
  return new Set(ended.map(({ message_id }) => message_id));
}

/**
 * Looks whether the workers of open attempts are connected to Postgres. Records the first time that one is not, which a worker that
 * comes back clears.
 * @returns by message: the milliseconds since then, of those whose worker is gone
 */
export async function inspectWorkers(db: Db, attempts: readonly AttemptKey[]): Promise<ReadonlyMap<string, number>> {
  if (attempts.length === 0) return new Map();
  const inspected = await queryRows<{ message_id: string; goneForMs: number | null }>(db, {
    name: 'inspect_workers',
    text: `UPDATE attempts AS attempt
           SET denied_at = CASE WHEN pg_try_advisory_xact_lock_shared($3, attempt.worker)
                                THEN coalesce(attempt.denied_at, clock_timestamp()) END
           FROM unnest($1::text[], $2::integer[]) AS inspected(message_id, n)
           WHERE attempt.message_id = inspected.message_id AND attempt.n = inspected.n AND attempt.message_id = ANY ($1)
             AND attempt.outcome IS NULL AND attempt.worker IS NOT NULL
           RETURNING attempt.message_id,
                     (extract(epoch FROM clock_timestamp() - attempt.denied_at) * 1000)::float8 AS "goneForMs"`,
    values: [...columns(attempts, 'message_id', 'n'), WORKER_LOCKS],
  });
  return new Map(
    inspected.flatMap(({ message_id, goneForMs }): [string, number][] =>
      goneForMs === null ? [] : [[message_id, goneForMs]],
    ),
  );
}

function keyOf({ message_id, n }: AttemptKey): string {
  return `${message_id} ${n}`;
}
