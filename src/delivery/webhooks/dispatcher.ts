import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { startLoop } from '../../lib/background-loop.ts';
import { LEASE_MS, leaseEndpoints, renewLeases } from '../../store/webhooks/leases.ts';
import type { WebhookDeps } from './contract.ts';
import { drain } from './drain.ts';

/** Endpoints that one worker serves concurrently. It mostly waits for slow ones. */
const MAX_ENDPOINTS = 500;
/** Deliveries that one worker holds in memory for all endpoints; usually 1 kB each, at most 20 kB. */
const MAX_HELD = 20_000;
/** Endpoints with pending deliveries that one poll reads. */
const MAX_READ = 500;
/** Endpoints that one poll leases, so that workers share them. */
const MAX_LEASED = 100;
const POLL_INTERVAL_MS = 1_000;
/** Minimum time between two polls: every request to the API may wake the dispatcher. */
const MIN_POLL_INTERVAL_MS = 100;
/** A third of a lease: a renewal that has skipped a locked endpoint is repeated before the lease lapses. */
const RENEW_INTERVAL_MS = LEASE_MS / 3;

interface WebhookDispatcher {
  /** Signals that deliveries may be due. Cheap: calls are coalesced into one poll. */
  readonly wake: () => void;
  /** Resolves when no attempt is in flight. Abort `deps.stopping` first. */
  readonly stop: () => Promise<void>;
}

/**
 * Leases endpoints that have due deliveries, in the order of their ids and then from the start again, so that each gets its
 * turn, and posts their deliveries. Any number of workers may share the endpoints. If one dies, its leases lapse, and what it
 * had not recorded is posted again.
 */
export function startWebhookDispatcher(deps: WebhookDeps, pollIntervalMs = POLL_INTERVAL_MS): WebhookDispatcher {
  const holder = randomUUID();
  /** Our leases by endpoint: the time at which each lapses, in milliseconds of the monotonic clock. */
  const leases = new Map<string, number>();
  const runs = new Set<Promise<void>>();
  let waking = new AbortController();
  let after = '';
  let renewedAt = performance.now();

  const serve = async (endpointId: string): Promise<void> => {
    const isHeld = () => performance.now() < (leases.get(endpointId) ?? 0);
    try {
      await drain(deps, { endpointId, holder, isHeld, maxRead: () => Math.floor(MAX_HELD / leases.size) });
    } catch (error) {
      // The lease is not released: it delays the next run.
      deps.log.warn({ err: error, endpoint: endpointId }, 'webhook deliveries interrupted');
    }
    leases.delete(endpointId);
    waking.abort();
  };

  const renew = async (): Promise<void> => {
    const now = performance.now();
    if (now - renewedAt < RENEW_INTERVAL_MS) return;
    const renewed = await renewLeases(deps.pool, holder, [...leases.keys()]);
    for (const id of renewed) if (leases.has(id)) leases.set(id, now + LEASE_MS);
    renewedAt = now;
  };

  /** @returns true if more endpoints may have due deliveries */
  const lease = async (): Promise<boolean> => {
    const limit = Math.min(MAX_LEASED, MAX_ENDPOINTS - leases.size);
    if (limit === 0 || deps.stopping.aborted) return false;
    const now = performance.now();
    const { ids, next } = await leaseEndpoints(deps.pool, holder, after, MAX_READ, limit);
    after = next ?? '';
    for (const id of ids) {
      // If the lease had lapsed, for example while the process was suspended, the run may still have attempts in flight.
      const isServed = leases.has(id);
      leases.set(id, now + LEASE_MS);
      if (isServed) continue;
      const run = serve(id).finally(() => runs.delete(run));
      runs.add(run);
    }
    return next !== null;
  };

  const step = async (): Promise<void> => {
    waking = new AbortController();
    await renew();
    if (await lease()) return;
    await sleep(pollIntervalMs, undefined, { signal: waking.signal }).catch(() => undefined);
  };
  const stopLoop = startLoop(MIN_POLL_INTERVAL_MS, step, (error) =>
    deps.log.warn({ err: error }, 'webhook deliveries could not be leased'),
  );

  return {
    wake: () => waking.abort(),
    stop: async () => {
      // Leases are renewed until the last attempt has ended. A poll under way may still add runs, which end immediately.
      await Promise.all(runs);
      const stopped = stopLoop();
      waking.abort();
      await stopped;
      await Promise.all(runs);
    },
  };
}
