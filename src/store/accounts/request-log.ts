import { startLoop } from '../../lib/background-loop.ts';
import { requestsNotLogged } from '../../telemetry/topics.ts';
import type { Pool } from '../postgres/pool.ts';
import { insertApiRequests, type NewApiRequest } from './api-requests.ts';

const WRITE_INTERVAL_MS = 1_000;
/** Bounds the cost of the log: a process stores at most this many requests per second. */
const ROWS_PER_WRITE = 1_000;
/** Requests in memory, for a burst or an outage of the database of ten seconds. */
const MAX_PENDING = 10_000;
/** The last slots are reserved for failed requests, which users search for most. */
const MAX_PENDING_SUCCESSES = 8_000;

export interface RequestLog {
  /** Stores a request in the background, or drops it under overload. Never waits or fails. */
  readonly record: (request: NewApiRequest) => void;
  /** Writes what is pending. */
  readonly stop: () => Promise<void>;
}

/**
 * Writes API requests to the database, in batches.
 * @param onError called for the first of consecutive failed writes; they are repeated
 */
export function openRequestLog(pool: Pool, onError: (error: unknown) => void): RequestLog {
  let pending: NewApiRequest[] = [];
  const write = async (): Promise<void> => {
    const batch = pending.slice(0, ROWS_PER_WRITE);
    if (batch.length === 0) return;
    await insertApiRequests(pool, batch);
    pending = pending.slice(batch.length);
  };
  const stopWriting = startLoop(WRITE_INTERVAL_MS, write, onError);
  return {
    record(request) {
      if (pending.length < (request.status < 400 ? MAX_PENDING_SUCCESSES : MAX_PENDING)) pending.push(request);
      else requestsNotLogged.publish({ count: 1 });
    },
    stop: async () => {
      await stopWriting();
      try {
        while (pending.length > 0) await write();
      } catch (error) {
        onError(error);
        requestsNotLogged.publish({ count: pending.length });
      }
    },
  };
}
