import { FAILING_DAYS } from '../../domain/webhooks.ts';
import { disableAndNotify } from '../../projection/endpoints.ts';
import { openEndpoint, type OpenEndpoint, releaseEndpoint } from '../../store/webhooks/leases.ts';
import { findDue, recordAttempts } from '../../store/webhooks/attempts.ts';
import { persist } from '../persist.ts';
import type { Lease, WebhookDeps } from './contract.ts';
import { type DeliveryPool, makeDeliveryPool, MAX_IN_FLIGHT } from './in-flight.ts';

/** Deliveries read together for one endpoint, at most; the lease may allow fewer. */
const MAX_READ = 200;
/** New attempts start for this long: there may be more endpoints than a worker serves concurrently. */
const MAX_RUN_MS = 30_000;
const POLL_INTERVAL_MS = 100;

/** The state of one run for an endpoint. */
interface Run {
  readonly lease: Lease;
  readonly deliveries: DeliveryPool;
  /** The latest state of the endpoint: undefined before the first read, null if it was deleted. */
  endpoint: OpenEndpoint | null | undefined;
  /** True if the last read found as many as it may. */
  hasMore: boolean;
  /** Milliseconds of the monotonic clock. */
  nextPollAt: number;
  lastWorkAt: number;
}

/** Posts due deliveries to a leased endpoint until it is idle or MAX_RUN_MS has passed, and releases it. */
export async function drain(deps: WebhookDeps, lease: Lease): Promise<void> {
  const startedAt = performance.now();
  const mayContinue = () => performance.now() - startedAt < MAX_RUN_MS && !deps.stopping.aborted && lease.isHeld();
  const deliveries = makeDeliveryPool(deps, mayContinue);
  const run: Run = {
    lease,
    deliveries,
    endpoint: undefined,
    hasMore: false,
    nextPollAt: 0,
    lastWorkAt: startedAt,
  };
  let pollError: Error | undefined;
  try {
    for (;;) {
      await record(deps, run);
      let isActive = false;
      if (!pollError && mayContinue() && deliveries.goneUrl() === undefined) {
        try {
          isActive = await poll(deps, run);
        } catch (error) {
          // Attempts in flight end and are recorded, so that they are not repeated.
          pollError = error as Error;
          deliveries.clear();
        }
      }
      if (deliveries.isFinished() && (!isActive || isIdle(deps, run))) break;
      await deliveries.waitForProgress(isActive ? run.nextPollAt : Infinity);
    }
  } finally {
    deliveries.close();
  }
  if (pollError) throw pollError;
  await end(deps, lease, deliveries);
}

/** Releases the endpoint, and disables it if its URL is gone or if all attempts of five days have failed. */
async function end({ pool }: WebhookDeps, { endpointId: id, holder }: Lease, deliveries: DeliveryPool): Promise<void> {
  const health = deliveries.health();
  const goneUrl = deliveries.goneUrl();
  if (goneUrl !== undefined) await disableAndNotify(pool, id, 'it answered 410 Gone', { url: goneUrl });
  await releaseEndpoint(pool, holder, id, health);
  if (health.hasSuccess || !health.hasRepeatedFailure) return;
  await disableAndNotify(pool, id, `all attempts of ${FAILING_DAYS} days have failed`, { failingDays: FAILING_DAYS });
}

/**
 * Reads the endpoint, which its owner may have changed, and due deliveries if few are queued.
 * @returns true if the endpoint exists and is enabled
 */
async function poll(deps: WebhookDeps, run: Run): Promise<boolean> {
  const { lease, deliveries } = run;
  const { endpointId: id } = lease;
  const needsMore = deliveries.queuedCount() < MAX_IN_FLIGHT;
  const now = performance.now();
  if (now >= run.nextPollAt || (needsMore && run.hasMore)) {
    run.nextPollAt = now + POLL_INTERVAL_MS;
    run.endpoint = (await openEndpoint(deps.pool, id)) ?? null;
    const readAt = performance.now();
    if (run.endpoint?.status === 'enabled') {
      const limit = Math.max(MAX_IN_FLIGHT, Math.min(MAX_READ, lease.maxRead()));
      const due = needsMore ? await findDue(deps.pool, id, deliveries.ids(), limit) : [];
      if (needsMore) run.hasMore = due.length === limit;
      if (due.length > 0) run.lastWorkAt = now;
      deliveries.enqueue(run.endpoint, readAt, due);
    } else {
      deliveries.clear();
    }
  }
  return run.endpoint?.status === 'enabled';
}

/** Attempts that end while others are being recorded are recorded together by the next call. */
async function record(deps: WebhookDeps, { deliveries }: Run): Promise<void> {
  const ended = deliveries.takeFinished();
  if (ended.length > 0) await persist(() => recordAttempts(deps.pool, ended));
}

function isIdle({ idleTimeoutMs }: WebhookDeps, { deliveries, lastWorkAt }: Run): boolean {
  return deliveries.queuedCount() === 0 && performance.now() - lastWorkAt >= idleTimeoutMs;
}
