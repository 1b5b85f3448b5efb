import { ServiceError } from '../domain/errors.ts';
import { makeDeadline } from '../lib/deadline.ts';
import { makeSemaphore, type Release, type Semaphore } from '../lib/semaphore.ts';
import { limitPool } from '../store/postgres/limited-pool.ts';
import type { Pool } from '../store/postgres/pool.ts';

/** Connections of the main pool that requests of organizations leave to key look-ups, the relay and callbacks. */
const RESERVED_CONNECTIONS = 4;
/** The part of a pool that one organization may use at a time. */
const SHARE = 1 / 2;
/** Requests at a time whose statements may take seconds, of all organizations and of one. */
const MAX_EXPENSIVE = 4;
const MAX_EXPENSIVE_PER_ORGANIZATION = 2;
/** The maximum time that a request waits for a connection or its turn before the response 503. */
const MAX_WAIT_MS = 5_000;
/** About the time in which an expensive request ends. */
const RETRY_AFTER_SECONDS = 2;

/** A request for the database on behalf of an organization. */
export interface DatabaseUse {
  readonly orgId: string;
  /** It changes nothing, so it uses the pool for reads. */
  readonly isRead: boolean;
  /** Its statements may take seconds: it waits until fewer requests of that kind are in progress. */
  readonly isExpensive: boolean;
  /** Returns a signal that aborts when the caller has disconnected. Called at most once. */
  readonly closed: () => AbortSignal;
}

/**
 * Shares the database connections of an API process between organizations. A request gets its pool from here. The pool waits for a
 * connection of the organization's share, so parallel and long series of statements count as what they use, and a client that reads a
 * response slowly holds none.
 */
export interface ConnectionShares {
  /**
   * Runs a request with the pool that it may use.
   * @throws ServiceError unavailable, also from statements of `work`, if the share stays in use for 5 s or the caller disconnects
   */
  readonly run: <T>(use: DatabaseUse, work: (pool: Pool) => Promise<T>) => Promise<T>;
}

/**
 * @param main the pool for acceptance and changes, which key look-ups and the relay use too
 * @param reads the pool for reads, which ends their statements after a few seconds
 */
export function makeConnectionShares(main: Pool, reads: Pool): ConnectionShares {
  const mainSlots = slotsOf(main, RESERVED_CONNECTIONS);
  const readSlots = slotsOf(reads, 0);
  const expensiveSlots = makeSemaphore(MAX_EXPENSIVE, MAX_EXPENSIVE_PER_ORGANIZATION);
  return {
    async run({ orgId, isRead, isExpensive, closed }, work) {
      let signal: AbortSignal | undefined;
      const waitFor = (slots: Semaphore) => take(slots, orgId, () => (signal ??= closed()));
      const release = isExpensive ? await waitFor(expensiveSlots) : undefined;
      const pool = isRead ? limitPool(reads, () => waitFor(readSlots)) : limitPool(main, () => waitFor(mainSlots));
      return work(pool).finally(release);
    },
  };
}

function slotsOf({ options: { max } }: Pool, reserved: number): Semaphore {
  return makeSemaphore(Math.max(max - reserved, 1), Math.max(Math.floor(max * SHARE), 1));
}

/** @throws ServiceError unavailable */
async function take(slots: Semaphore, orgId: string, closed: () => AbortSignal): Promise<Release> {
  // Without contention no timer is needed.
  const release = slots.tryTake(1, orgId);
  if (release) return release;
  return slots.take(1, { signal: makeDeadline(MAX_WAIT_MS, [closed()]), holder: orgId }).catch(() => {
    const message = 'too many requests of this organization are in progress; try again';
    throw new ServiceError('unavailable', message, undefined, RETRY_AFTER_SECONDS);
  });
}
