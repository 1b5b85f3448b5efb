import { Client } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';
import { makeApp } from '../http/app.ts';
import { startRelay, TemporalUnreachable } from '../relay/relay.ts';
import { temporalCarrier } from '../relay/temporal.ts';
import { makePool } from '../store/pool.ts';
import { listenToOutbox, makeNotifier } from '../store/wake.ts';
import { readSettings } from './env.ts';
import { makeLog, sayReady, stopOnSignals } from './process.ts';
import { connectToTemporal, logTemporalTo } from './temporal.ts';

/** The process that serves HTTP and carries the outbox to Temporal. It accepts email while Temporal is away. */
const config = readSettings('DATABASE_URL');
const log = makeLog('api', config.LOG_LEVEL);
logTemporalTo(log);

const pool = makePool(config.DATABASE_URL, 'api', 20, (error) =>
  log.warn({ err: error }, 'lost a database connection'),
);
const ending = new AbortController();

let carryOut: ReturnType<typeof temporalCarrier> = () => Promise.reject(new TemporalUnreachable('not connected yet'));
const relay = startRelay({ pool, log, carryOut: (row) => carryOut(row) });
const connected = connect();
const stopListening = listenToOutbox(config.DATABASE_URL, relay.wake);

const notify = makeNotifier(pool);
const { POSTMARK_WEBHOOK_USER: user, POSTMARK_WEBHOOK_PASSWORD: password } = config;
// With one of them every callback would be refused, and Postmark gives up what is refused.
if (user ?? password) readSettings('POSTMARK_WEBHOOK_USER', 'POSTMARK_WEBHOOK_PASSWORD');
const app = await makeApp({
  pool,
  log,
  maxBodyBytes: config.MAX_BODY_BYTES,
  postmarkCallback: user && password ? { user, password } : null,
  wakeRelay: () => {
    relay.wake();
    notify();
  },
});

stopOnSignals(log, async () => {
  ending.abort();
  await app.close();
  await Promise.all([relay.stop(), stopListening()]);
  await (await connected)?.close();
  await pool.end();
});

const url = await app.listen({ port: config.PORT, host: config.HOST });
sayReady({ url });

/** @returns undefined when this process was told to end before Temporal answered */
async function connect(): Promise<NativeConnection | undefined> {
  try {
    const { connection, namespace } = await connectToTemporal(log, ending.signal);
    carryOut = temporalCarrier(new Client({ connection, namespace }), {
      maximumAttempts: config.SEND_MAX_ATTEMPTS,
      initialInterval: config.SEND_INITIAL_INTERVAL,
      maximumInterval: config.SEND_MAX_INTERVAL,
    });
    relay.wake();
    return connection;
  } catch (error) {
    if (ending.signal.aborted) return undefined;
    throw error;
  }
}
