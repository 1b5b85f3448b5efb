import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { DEAD_PEER_DETECTION } from './pool.ts';

/** Milliseconds between two tries to connect. */
const AGAIN = 1_000;
/** Milliseconds without an answer after which a connection that is asked is given up. */
const SILENCE = 2_000;

/** Who listens, and to what. */
export interface Listener {
  /** What its connection is called in pg_stat_activity. */
  readonly name: string;
  readonly channel: 'outbox' | 'keys';
  /** Called at every notice, with its payload. */
  readonly onNotice: (payload: string) => void;
  /**
   * Called when it listens, after each (re)connection: notices were missed meanwhile.
   * @param askedAt when it asked to: `performance.now()`
   */
  readonly onListening: (askedAt: number) => void;
  /**
   * The connection is asked so often whether it lives. An answer comes after all notices of what was committed before the
   * question.
   */
  readonly ask?: { readonly every: number; readonly onAnswer: (askedAt: number) => void };
}

/** Listens for as long as it takes, connecting again every second. @returns a function that ends it */
export function listen(databaseUrl: string, listener: Listener): () => Promise<void> {
  const ending = new AbortController();
  const running = (async () => {
    while (!ending.signal.aborted) {
      await listenUntilLost(databaseUrl, listener, ending.signal);
      await sleep(AGAIN, undefined, { signal: ending.signal }).catch(() => undefined);
    }
  })();
  return () => {
    ending.abort();
    return running;
  };
}

async function listenUntilLost(databaseUrl: string, listener: Listener, ending: AbortSignal): Promise<void> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    application_name: `sendwright ${listener.name}`,
    connectionTimeoutMillis: 5_000,
    query_timeout: SILENCE,
    options: DEAD_PEER_DETECTION,
    keepAlive: true,
  });
  const over = new AbortController();
  const lost = new Promise<void>((resolve) => {
    const end = (): void => {
      over.abort();
      resolve();
    };
    client.once('end', end);
    client.on('error', end);
    ending.addEventListener('abort', end, { signal: over.signal });
  });
  client.on('notification', ({ payload }) => listener.onNotice(payload ?? ''));
  try {
    await client.connect();
    const askedAt = performance.now();
    await client.query(`LISTEN ${listener.channel}`);
    listener.onListening(askedAt);
    await Promise.race([lost, keepAsking(client, listener, over.signal)]);
  } catch {
    // Unreachable or silent: the caller tries again.
  } finally {
    over.abort();
    // A silent network would keep the farewell too.
    await Promise.race([client.end().catch(() => undefined), sleep(SILENCE, undefined, { ref: false })]);
  }
}

/** @throws when there is no answer, or when it is over; never returns */
async function keepAsking(client: pg.Client, { ask }: Listener, over: AbortSignal): Promise<never> {
  if (!ask) return new Promise(() => undefined);
  for (;;) {
    // Ends with an error when it is over, as does the question.
    await sleep(ask.every, undefined, { signal: over });
    const askedAt = performance.now();
    await client.query('SELECT');
    ask.onAnswer(askedAt);
  }
}
