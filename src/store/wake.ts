import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
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
 * Connects again every second, for as long as it takes. @returns a function that ends it
 */
export function listenToOutbox(databaseUrl: string, wake: () => void): () => Promise<void> {
  const ending = new AbortController();
  const running = (async () => {
    while (!ending.signal.aborted) {
      await listenUntilLost(databaseUrl, wake, ending.signal);
      await sleep(1_000, undefined, { signal: ending.signal }).catch(() => undefined);
    }
  })();
  return () => {
    ending.abort();
    return running;
  };
}

async function listenUntilLost(databaseUrl: string, wake: () => void, ending: AbortSignal): Promise<void> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    application_name: 'sendwright relay listener',
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
  });
  const over = new AbortController();
  const lost = new Promise<void>((resolve) => {
    client.once('end', resolve);
    client.on('error', () => resolve());
    ending.addEventListener('abort', () => resolve(), { signal: over.signal });
  });
  client.on('notification', wake);
  try {
    await client.connect();
    await client.query('LISTEN outbox');
    wake();
    await lost;
  } catch {
    // Unreachable: the caller tries again.
  } finally {
    over.abort();
    await client.end().catch(() => undefined);
  }
}
