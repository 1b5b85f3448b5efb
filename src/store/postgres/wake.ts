import { listen } from './listen.ts';
import type { Pool } from './pool.ts';

/** NOTIFY takes a lock that all commits share, so it is sent at most this often, in milliseconds. */
const NOTIFY_EVERY = 50;

/** Tells the relays of other processes that the outbox has rows. A hint: one that is lost is made up for by sweeping. */
export function makeNotifier(pool: Pool): () => void {
  let timer: NodeJS.Timeout | undefined;
  return () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      pool.query('NOTIFY outbox').catch(() => undefined);
    }, NOTIFY_EVERY).unref();
  };
}

/**
 * Calls `wake` at every NOTIFY on the outbox, and once after each (re)connection, since notices were missed meanwhile.
 * @returns a function that ends it
 */
export function listenToOutbox(databaseUrl: string, wake: () => void): () => Promise<void> {
  return listen(databaseUrl, { name: 'relay listener', channel: 'outbox', onNotice: wake, onListening: wake });
}
