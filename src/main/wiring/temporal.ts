import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { type LogMetadata, type MetricsExporterConfig, NativeConnection, Runtime } from '@temporalio/worker';
import type { Logger } from 'pino';
import { SEARCH_ATTRIBUTES } from '../../relay/temporal.ts';

/** A connection to Temporal and the namespace to use on it. */
export interface Temporal {
  readonly connection: NativeConnection;
  readonly namespace: string;
}

const LONGEST_PAUSE = 10_000;
/** IndexedValueType of Temporal's API: an exact word. */
const KEYWORD = 2;
/** gRPC status codes of a server that already has an attribute, and of one whose attributes are made elsewhere. */
const ALREADY_EXISTS = 6;
const NOT_OURS_TO_MAKE = [7, 12];

/**
 * Connects as Temporal's own environment configuration says (`TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, TLS, API key,
 * profile), and makes sure that the search attributes exist. Tries again for as long as it takes.
 */
export async function connectToTemporal(log: Logger, signal: AbortSignal): Promise<Temporal> {
  const { connectionOptions, namespace = 'default' } = loadClientConnectConfig();
  for (let pause = 500; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
    try {
      const connection = await NativeConnection.connect(connectionOptions);
      try {
        await ensureSearchAttributes(connection, namespace, log);
        return { connection, namespace };
      } catch (error) {
        await connection.close();
        throw error;
      }
    } catch (error) {
      signal.throwIfAborted();
      log.warn({ address: connectionOptions.address, reason: reasonOf(error) }, 'Temporal cannot be reached yet');
      await sleep(pause, undefined, { signal });
    }
  }
}

/** Where our workflows are in Temporal's UI. @param url the setting `TEMPORAL_UI_URL` */
export function temporalUi(url: string | undefined): { url: string; namespace: string } | undefined {
  return url === undefined ? undefined : { url, namespace: loadClientConnectConfig().namespace ?? 'default' };
}

/** Adds the search attributes that a namespace lacks, where this Temporal lets us. */
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
    if (code === undefined || !NOT_OURS_TO_MAKE.includes(code)) throw error;
    log.warn(
      `this Temporal does not let us add search attributes: it must have ${SEARCH_ATTRIBUTES.join(', ')} (Keyword)`,
    );
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Sends the SDK's own log lines where ours go. Once per process, before the first connection.
 * @param metricsAt `host:port` where it is to serve its metrics; without it, it keeps none
 */
export function installTemporal(log: Logger, metricsAt?: string): void {
  Runtime.install({
    ...(metricsAt !== undefined && { telemetryOptions: { metrics: metricsOf(metricsAt) } }),
    logger: {
      log: (level, message, meta) => log[LEVELS[level]](asOurs(meta), message),
      trace: (message, meta) => log.trace(asOurs(meta), message),
      debug: (message, meta) => log.debug(asOurs(meta), message),
      info: (message, meta) => log.info(asOurs(meta), message),
      warn: (message, meta) => log.warn(asOurs(meta), message),
      error: (message, meta) => log.error(asOurs(meta), message),
    },
    // Signals are ours: a worker stops when its process is told to.
    shutdownSignals: [],
  });
}

/** Names and units as Prometheus has them. */
function metricsOf(bindAddress: string): MetricsExporterConfig {
  return {
    attachServiceName: false,
    prometheus: { bindAddress, countersTotalSuffix: true, unitSuffix: true, useSecondsForDurations: true },
  };
}

/** Addresses that are tried for the SDK's metrics: what was free may be taken a moment later. */
const ADDRESSES = 5;

/** Does likewise, and has the SDK serve its metrics on this machine. @returns where, as `host:port` */
export async function installWithMetrics(log: Logger): Promise<string> {
  for (let tries = 1; ; tries++) {
    const address = await freeAddress();
    try {
      installTemporal(log, address);
      return address;
    } catch (error) {
      if (tries === ADDRESSES) throw error;
    }
  }
}

/** An address of this machine that was free just now: the SDK would take any, and not say which. */
async function freeAddress(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { address, port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return `${address}:${port}`;
}

/** The SDK's `error` is our `err`: so it is logged with its message and stack, and without the row that Postgres quotes. */
function asOurs({ error, ...meta }: Readonly<Record<string, unknown>> = {}): LogMetadata {
  return error === undefined ? meta : { ...meta, err: error };
}

const LEVELS = { TRACE: 'trace', DEBUG: 'debug', INFO: 'info', WARN: 'warn', ERROR: 'error' } as const;
