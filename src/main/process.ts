import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { isWeakSecretKey } from '../lib/secret-key.ts';
import { type DestinationStream, type Logger, pino } from 'pino';

/** Where errors of Postgres quote what was to be stored: addresses, subjects, bodies. */
const QUOTES = ['err.detail', 'err.where', 'err.internalQuery'];

/** The log of one process: JSON lines on standard output, or wherever they are to go. */
export function makeLog(name: string, level: string, to?: DestinationStream): Logger {
  return pino({ name: `sendwright ${name}`, level, redact: { paths: QUOTES, remove: true } }, to);
}

/** Logs a warning when `SECRET_KEY` can be guessed. It is no error: an existing installation cannot replace it in an instant. */
export function warnOfWeakSecretKey(secretKey: string, log: Pick<Logger, 'warn'>): void {
  if (!isWeakSecretKey(secretKey)) return;
  log.warn('SECRET_KEY is weak; replace it with 32 random bytes, for example from `openssl rand -base64 32`');
}

/** Bytes in use from which the heap may grow by little only, and how often they are looked at, in milliseconds. */
const LARGE_HEAP = 64 * 1_048_576;
const LOOK_EVERY = 50;

/**
 * Keeps the heap of a process that answers many small requests and some large ones as they need it.
 *
 * - New objects are made among the young ones, whatever became of others that the same line has made. After a burst, in
 *   which requests wait and their objects age, V8 would make those of later requests old from the start, and what they
 *   refer to grows old with them: requests then leave some ten kilobytes each for the slow clearing.
 * - Once it is large, it is cleared when it has grown by a fifth. With gigabytes free, V8 lets it double first: what
 *   batches of 10,000 have left behind stays, and the process holds two thirds more memory for no time won. While it is
 *   small it may double, since a fifth of little is soon used up by many small requests.
 */
export function tendHeap(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
  setInterval(() => {
    const isLarge = getHeapStatistics().used_heap_size > LARGE_HEAP;
    setFlagsFromString(`--heap-growing-percent=${isLarge ? 20 : 100}`);
  }, LOOK_EVERY).unref();
}

/**
 * Ends this process in good order: on SIGTERM, on SIGINT, and when the process that started it is gone. It exits with
 * 0 once `stop` is done, with 1 when that takes longer than `timeoutMs` or fails.
 */
export function stopOnSignals(log: Logger, timeoutMs: number, stop: () => Promise<unknown>): void {
  let stopping = false;
  const end = (): void => {
    if (stopping) return;
    stopping = true;
    setTimeout(() => process.exit(1), timeoutMs).unref();
    stop().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ err: error }, 'could not stop in good order');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  process.on('disconnect', end);
}

/** Tells the process that started this one, if it listens, that this one serves now. */
export function sayReady(facts: Record<string, unknown> = {}): void {
  process.send?.({ ready: true, ...facts });
}

/** Ends this process with one line for people, for a mistake in how it was started. */
export function endWith(message: string): never {
  console.error(message);
  process.exit(1);
}
