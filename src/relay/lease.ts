import { randomUUID } from 'node:crypto';
import { type RelayLag, releaseRelayLease, takeRelayLease } from '../store/outbox/relay-lease.ts';
import type { Pool } from '../store/postgres/pool.ts';

/** The right to dispatch the outbox, which one relay has at a time. */
interface Lease {
  /** Takes the lease, or renews it if it was renewed a while ago. @returns false if another relay holds it */
  readonly hold: () => Promise<boolean>;
  /** Lets another relay take it. */
  readonly release: () => Promise<void>;
}

/**
 * The duration of a lease. It exceeds the time between two polls of an idle relay. A relay that ends without releasing its lease is
 * replaced after this time.
 */
const DURATION_MS = 3_000;
const RENEWAL_INTERVAL_MS = 500;

/**
 * @param now a monotonic clock in milliseconds
 * @param lag recorded when the lease is renewed
 */
export function makeLease(pool: Pool, now: () => number, lag: RelayLag): Lease {
  const holder = randomUUID();
  let renewedAt = -Infinity;
  return {
    hold: async () => {
      const askedAt = now();
      if (askedAt - renewedAt < RENEWAL_INTERVAL_MS) return true;
      const isHeld = await takeRelayLease(pool, holder, DURATION_MS, lag);
      renewedAt = isHeld ? askedAt : -Infinity;
      return isHeld;
    },
    release: async () => {
      if (renewedAt === -Infinity) return;
      renewedAt = -Infinity;
      await releaseRelayLease(pool, holder);
    },
  };
}
