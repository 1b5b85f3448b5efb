import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { isWeakSecretKey } from '../lib/secret-key.ts';
import { type DestinationStream, type Logger, pino, stdSerializers } from 'pino';

/** Fields of Postgres errors that may contain addresses, subjects or bodies. */
const REDACTED_FIELDS = new Set(['detail', 'where', 'internalQuery']);
/** Errors nest less deep; a cycle ends there too. */
const MAX_ERROR_DEPTH = 8;

/** Creates the logger of a process: JSON lines, by default on standard output. */
export function makeLog(name: string, level: string, to?: DestinationStream): Logger {
  const serializers = { err: (error: unknown) => withoutContent(stdSerializers.err(error as Error)) };
  return pino({ name: `sendwright ${name}`, level, serializers }, to);
}

/** Removes those fields from a serialized error, also from the errors in it: causes and those of an AggregateError. */
function withoutContent(value: unknown, depth = 0): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_ERROR_DEPTH) return undefined;
  if (Array.isArray(value)) return value.map((item) => withoutContent(item, depth + 1));
  // Only its own fields: the prototype of a serialized error has the error itself, which contains them.
  const fields = value instanceof Error ? Object.entries(stdSerializers.err(value)) : Object.entries(value);
  return Object.fromEntries(
    fields
      .filter(([name]) => !REDACTED_FIELDS.has(name))
      .map(([name, field]) => [name, withoutContent(field, depth + 1)]),
  );
}

/** Logs a warning if `SECRET_KEY` is guessable. It is not an error, since an installation cannot replace its key immediately. */
export function warnOfWeakSecretKey(secretKey: string, log: Pick<Logger, 'warn'>): void {
  if (!isWeakSecretKey(secretKey)) return;
  log.warn('SECRET_KEY is weak; replace it with 32 random bytes, for example from `openssl rand -base64 32`');
}

/** The minimum growth for a full collection: marking live objects takes about 100 ms of CPU time. */
const MIN_GARBAGE_BYTES = 40 * 1_048_576;
const MIN_GROWTH_PERCENT = 20;
const HEAP_CHECK_INTERVAL_MS = 50;

/**
 * Tunes V8's heap for many small requests and some large ones.
 * - Disables allocation-site pretenuring. After a burst, in which the objects of pending requests age, V8 would allocate the
 * objects of later requests in the old generation, so that each request leaves about ten kilobytes to the full collector.
 * - Collects the heap after a growth of 40 MB or 20 %, whichever is more. With gigabytes of free memory V8 first lets the
 * heap double, and the process retains the garbage of batches of 10,000: two thirds more memory without a gain in speed.
 */
export function tuneHeap(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
  setInterval(() => {
    const percent = (100 * MIN_GARBAGE_BYTES) / getHeapStatistics().used_heap_size;
    setFlagsFromString(`--heap-growing-percent=${Math.max(MIN_GROWTH_PERCENT, Math.round(percent))}`);
  }, HEAP_CHECK_INTERVAL_MS).unref();
}

/** The maximum delay of a timer in Node, 24.8 days. One with a longer delay fires after 1 ms. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Shuts this process down gracefully on SIGTERM, on SIGINT, and when its parent process has ended. It exits with 0 after
 * `stop`, and with 1 if `stop` fails or takes longer than `timeoutMs`.
 */
export function stopOnSignals(log: Logger, timeoutMs: number, stop: () => Promise<unknown>): void {
  let stopping = false;
  const end = (): void => {
    if (stopping) return;
    stopping = true;
    setTimeout(() => process.exit(1), Math.min(timeoutMs, MAX_TIMER_MS)).unref();
    stop().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ err: error }, 'graceful shutdown failed');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  process.on('disconnect', end);
}

/** Notifies the parent process, if there is one, that this process is ready. */
export function notifyReady(facts: Record<string, unknown> = {}): void {
  process.send?.({ ready: true, ...facts });
}

/** Ends this process with status 1 and one line on standard error, for a mistake in its configuration. */
export function exitWith(message: string): never {
  console.error(message);
  process.exit(1);
}
