import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { startLoop } from '../../lib/background-loop.ts';
import { DEAD_PEER_DETECTION, type Pool } from './pool.ts';

/** NOTIFY takes a lock that all commits share, so it is sent at most this often. */
const NOTIFY_INTERVAL_MS = 50;
const RECONNECT_INTERVAL_MS = 1_000;
const QUERY_TIMEOUT_MS = 2_000;

/**
 * Notifies other processes that the outbox has rows or that webhook deliveries are due. A lost notification is harmless: its
 * listeners also poll.
 */
export function makeNotifier(pool: Pool): () => void {
  let timer: NodeJS.Timeout | undefined;
  let sentAt = -Infinity;
  return () => {
    timer ??= setTimeout(
      () => {
        timer = undefined;
        sentAt = performance.now();
        pool.query('NOTIFY outbox').catch(() => undefined);
      },
      Math.max(0, sentAt + NOTIFY_INTERVAL_MS - performance.now()),
    ).unref();
  };
}

/**
 * Calls `wake` on every notification, and after each (re)connection, since notifications may have been missed.
 * @param name of the listener, part of the application_name of its connection
 * @returns stops listening
 */
export function listenToOutbox(databaseUrl: string, name: 'relay' | 'webhooks', wake: () => void): () => Promise<void> {
  const listen = (signal: AbortSignal) => listenUntilLost(databaseUrl, name, wake, signal);
  return startLoop(RECONNECT_INTERVAL_MS, listen, () => undefined);
}

/** Returns or throws when the connection is lost; throws if `signal` is aborted. */
async function listenUntilLost(
  databaseUrl: string,
  name: string,
  wake: () => void,
  signal: AbortSignal,
): Promise<void> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    application_name: `sendwright ${name} listener`,
    connectionTimeoutMillis: 5_000,
    query_timeout: QUERY_TIMEOUT_MS,
    options: DEAD_PEER_DETECTION,
    keepAlive: true,
  });
  client.on('error', () => undefined);
  client.on('notification', () => wake());
  const lost = once(client, 'end', { signal });
  lost.catch(() => undefined);
  try {
    await client.connect();
    await client.query('LISTEN outbox');
    wake();
    await lost;
  } finally {
    // On a silent network, closing would wait as well.
    await Promise.race([client.end().catch(() => undefined), sleep(QUERY_TIMEOUT_MS, undefined, { ref: false })]);
  }
}
