import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadClientConnectConfig } from '@temporalio/envconfig';
// The package's root exports these too, but also loads workers and the bundler of their code, which the API does not need.
import { NativeConnection } from '@temporalio/worker/lib/connection.js';
import { DefaultLogger, type LogMetadata } from '@temporalio/worker/lib/logger.js';
import { Runtime } from '@temporalio/worker/lib/runtime.js';
import type { Logger } from 'pino';
import { SEARCH_ATTRIBUTES } from '../../relay/temporal.ts';
import { exitWith } from '../process.ts';

const MAX_RETRY_DELAY_MS = 10_000;
/** IndexedValueType of Temporal's API. */
const KEYWORD = 2;
/** gRPC status codes. Servers whose search attributes are managed elsewhere return those of NOT_PERMITTED. */
const ALREADY_EXISTS = 6;
const NOT_PERMITTED = [7, 12];

type TemporalSettings = ReturnType<typeof loadClientConnectConfig> & { readonly namespace: string };

/**
 * Reads Temporal's own environment configuration (`TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, TLS, API key, profile). Ends the
 * process if it cannot be read.
 */
export function readTemporalSettings(): TemporalSettings {
  try {
    const { connectionOptions, namespace = 'default' } = loadClientConnectConfig();
    return { connectionOptions, namespace };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    exitWith(
      `Temporal's settings cannot be used (${reason}): check TEMPORAL_PROFILE, TEMPORAL_CONFIG_FILE and the files of TEMPORAL_TLS_…_PATH`,
    );
  }
}

/** Connects to Temporal and creates missing search attributes. Retries until it succeeds or `signal` is aborted. */
export async function connectToTemporal(
  { connectionOptions, namespace }: TemporalSettings,
  log: Logger,
  signal: AbortSignal,
): Promise<NativeConnection> {
  for (let delayMs = 500; ; delayMs = Math.min(delayMs * 2, MAX_RETRY_DELAY_MS)) {
    try {
      const connection = await NativeConnection.connect(connectionOptions);
      try {
        await ensureSearchAttributes(connection, namespace, log);
        return connection;
      } catch (error) {
        await connection.close();
        throw error;
      }
    } catch (error) {
      signal.throwIfAborted();
      const reason = error instanceof Error ? error.message : String(error);
      log.warn({ address: connectionOptions.address, reason }, 'Temporal unreachable, retrying');
      await sleep(delayMs, undefined, { signal });
    }
  }
}

/** Returns the location of our workflows in Temporal's UI. @param url the setting `TEMPORAL_UI_URL` */
export function temporalUi(
  url: string | undefined,
  { namespace }: TemporalSettings,
): { url: string; namespace: string } | undefined {
  return url === undefined ? undefined : { url, namespace };
}

/** Adds missing search attributes to a namespace if the server permits it. */
export async function ensureSearchAttributes(
  { operatorService }: NativeConnection,
  namespace: string,
  log: Logger,
): Promise<void> {
  try {
    const { customAttributes } = await operatorService.listSearchAttributes({ namespace });
    const missing = SEARCH_ATTRIBUTES.filter((name) => !(name in customAttributes));
    if (missing.length === 0) return;
    const searchAttributes = Object.fromEntries(missing.map((name) => [name, KEYWORD]));
    await operatorService.addSearchAttributes({ namespace, searchAttributes });
  } catch (error) {
    const { code } = error as { code?: number };
    if (code === ALREADY_EXISTS) return;
    if (code === undefined || !NOT_PERMITTED.includes(code)) throw error;
    log.warn(
      `this Temporal does not let us add search attributes: it must have ${SEARCH_ATTRIBUTES.join(', ')} (Keyword)`,
    );
  }
}

/**
 * Redirects the SDK's log to ours. Call it once per process before the first connection.
 * @param bindAddress `host:port` at which the SDK serves its metrics; without it, the SDK collects none
 */
export function installTemporal(log: Logger, bindAddress?: string): void {
  Runtime.install({
    ...(bindAddress !== undefined && {
      telemetryOptions: {
        metrics: {
          attachServiceName: false,
          prometheus: { bindAddress, countersTotalSuffix: true, unitSuffix: true, useSecondsForDurations: true },
        },
      },
    }),
    logger: new DefaultLogger('TRACE', ({ level, message, meta }) =>
      log[LOG_LEVELS[level]](toLogFields(meta), message),
    ),
    // The process handles signals itself.
    shutdownSignals: [],
  });
}

/** Maximum attempts to bind a port, since another process may bind a free port before the SDK does. */
const MAX_BIND_ATTEMPTS = 5;

/** Like `installTemporal`, with the SDK's metrics on a free port of the loopback interface. @returns their `host:port` */
export async function installWithMetrics(log: Logger): Promise<string> {
  for (let tries = 1; ; tries++) {
    const address = await freeAddress();
    try {
      installTemporal(log, address);
      return address;
    } catch (error) {
      if (tries === MAX_BIND_ATTEMPTS) throw error;
    }
  }
}

/** Finds a free port: the SDK can bind port 0 but does not report the port. */
async function freeAddress(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { address, port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return `${address}:${port}`;
}

/** Renames `error` to `err`, which our logger serializes and redacts. */
function toLogFields({ error, ...meta }: Readonly<Record<string, unknown>> = {}): LogMetadata {
  return error === undefined ? meta : { ...meta, err: error };
}

const LOG_LEVELS = { TRACE: 'trace', DEBUG: 'debug', INFO: 'info', WARN: 'warn', ERROR: 'error' } as const;
