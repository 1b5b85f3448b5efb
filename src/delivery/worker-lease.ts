import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { startLoop } from '../lib/background-loop.ts';
import { lockWorker } from '../store/emails/attempt-workers.ts';
import { type Db, execute, type Pool } from '../store/postgres/pool.ts';

/**
 * A session of a worker with Postgres that shows others that it lives: its attempts name its number, and the session holds the
 * advisory lock of that number. Postgres ends the session immediately when the process ends, and after 25 s when its host vanishes
 * (`DEAD_PEER_DETECTION`).
 */
export interface WorkerLease {
  /** Unique among the workers of an installation. It stays when the session is lost and opened again. */
  readonly worker: number;
  /** False while the session is not open. The worker may begin no attempt meanwhile. */
  readonly isHeld: () => boolean;
  /** Ends the session. */
  readonly stop: () => Promise<void>;
}

const RETRY_INTERVAL_MS = 500;
/** A session on a silent network is noticed after this time and the timeout of one statement. Postgres takes longer to end it. */
const PROBE_INTERVAL_MS = 2_000;
const PROBE_TIMEOUT_MS = 5_000;
const MAX_WORKER = 2 ** 31;

/**
 * Opens the session and opens it again whenever it is lost.
 * @param prepare runs in the session before it counts as open
 * @param onLost called for the first of consecutive failures
 */
export function startWorkerLease(
  pool: Pool,
  prepare: (client: Db) => Promise<void>,
  onLost: (error: unknown) => void,
): WorkerLease {
  const worker = randomInt(1, MAX_WORKER);
  let isHeld = false;
  const hold = async (signal: AbortSignal): Promise<void> => {
    const client = await pool.connect();
    const lost = once(client, 'end', { signal });
    lost.catch(() => undefined);
    try {
      await lockWorker(client, worker);
      await prepare(client);
      isHeld = true;
      for (let isOpen = true; isOpen;) {
        isOpen = await Promise.race([lost.then(() => false), sleep(PROBE_INTERVAL_MS, true, { signal, ref: false })]);
        if (isOpen) await within(PROBE_TIMEOUT_MS, execute(client, 'SELECT 1'));
      }
      if (!signal.aborted) throw new Error('the session of the worker has ended');
    } finally {
      isHeld = false;
      // Closes the connection, and with it the session.
      client.release(true);
    }
  };
  const onError = (error: unknown): void => {
    if ((error as Error).name !== 'AbortError') onLost(error);
  };
  return { worker, isHeld: () => isHeld, stop: startLoop(RETRY_INTERVAL_MS, hold, onError) };
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  work.catch(() => undefined);
  const timeout = new AbortController();
  const late = sleep(ms, undefined, { signal: timeout.signal, ref: false }).then(() => {
    throw new Error(`no answer within ${ms} ms`);
  });
  late.catch(() => undefined);
  try {
    return await Promise.race([work, late]);
  } finally {
    timeout.abort();
  }
}
