import { FAILING_DAYS } from '../../domain/webhooks.ts';
import { disableAndNotify } from '../../projection/endpoints.ts';
import { type Pool, transaction } from '../../store/postgres/pool.ts';
import {
  type Health,
  markIdle,
  markActive,
  recordHealth,
  openEndpoint,
  type OpenEndpoint,
} from '../../store/webhooks/idle.ts';
import { type DueDelivery, findDue, savePayloads, recordTries } from '../../store/webhooks/attempts.ts';
import { payloadOf } from '../../webhooks/payload.ts';
import { persist } from '../persist.ts';
import type { Drained, WebhookDeps } from './contract.ts';
import { type DeliveryPool, makeDeliveryPool, MAX_IN_FLIGHT } from './in-flight.ts';

/** Deliveries read together and held in memory for one endpoint; each is at most 20 kB. */
const MAX_READ = 200;
/** New attempts start for this long: there may be more endpoints than activity slots. */
const MAX_RUN_MS = 30_000;
const POLL_INTERVAL_MS = 100;

/** The state of one run for an endpoint. */
interface Run {
  readonly id: string;
  readonly deliveries: DeliveryPool;
  /** The latest state of the endpoint: undefined before the first read, null if it was deleted. */
  endpoint: OpenEndpoint | null | undefined;
  /** True if the last read was limited by MAX_READ. */
  hasMore: boolean;
  /** Milliseconds of the monotonic clock. */
  nextPollAt: number;
  lastWorkAt: number;
}

/** Posts due deliveries to an endpoint until it is idle or MAX_RUN_MS has passed. */
export async function drain(deps: WebhookDeps, id: string): Promise<Drained> {
  const startedAt = performance.now();
  const mayContinue = () => performance.now() - startedAt < MAX_RUN_MS && !deps.stopping.aborted;
  const deliveries = makeDeliveryPool(deps, mayContinue);
  const run: Run = { id, deliveries, endpoint: undefined, hasMore: false, nextPollAt: 0, lastWorkAt: startedAt };
  try {
    for (;;) {
      await record(deps, run);
      const isActive = mayContinue() && !deliveries.isGone() && (await poll(deps, run));
      if (!isActive && deliveries.isFinished()) return await endEarly(deps, run);
      if (isActive && isIdle(deps, run)) {
        const inMs = await markIdleUnlessDue(deps, run);
        if (inMs !== undefined) {
          const isDisabled = await isDisabledForFailing(deps.pool, id, deliveries.health());
          return isDisabled ? { state: 'closed' } : { state: 'asleep', inMs };
        }
      }
      await deliveries.waitForProgress(isActive ? run.nextPollAt : Infinity);
    }
  } finally {
    deliveries.close();
  }
}

/** Ends a run although more deliveries may be due. */
async function endEarly({ pool }: WebhookDeps, { id, deliveries, endpoint }: Run): Promise<Drained> {
  if (deliveries.isGone()) await disableAndNotify(pool, id, 'it answered 410 Gone', null);
  if (deliveries.isGone() || endpoint === null || endpoint?.status === 'disabled') return { state: 'closed' };
  await recordHealth(pool, id, deliveries.health());
  return (await isDisabledForFailing(pool, id, deliveries.health())) ? { state: 'closed' } : { state: 'again' };
}

/**
 * Disables an endpoint of which all attempts of five days have failed. This needs a separate transaction: one that marks an
 * endpoint idle locks its row, and two of those that notify each other's endpoint would deadlock.
 */
async function isDisabledForFailing(
  pool: Pool,
  id: string,
  { succeeded, hasRepeatedFailure }: Health,
): Promise<boolean> {
  if (succeeded || !hasRepeatedFailure) return false;
  return disableAndNotify(pool, id, `every try of ${FAILING_DAYS} days has failed`, FAILING_DAYS);
}

/**
 * Reads the endpoint, which its owner may have changed, and due deliveries if few are queued.
 * @returns whether the endpoint exists and is enabled
 */
async function poll(deps: WebhookDeps, run: Run): Promise<boolean> {
  const { id, deliveries } = run;
  const needsMore = deliveries.queuedCount() < MAX_IN_FLIGHT;
  const now = performance.now();
  if (now >= run.nextPollAt || (needsMore && run.hasMore)) {
    run.nextPollAt = now + POLL_INTERVAL_MS;
    run.endpoint = (await openEndpoint(deps.pool, id)) ?? null;
    if (run.endpoint?.status === 'enabled') {
      if (run.endpoint.idle) await markActive(deps.pool, id);
      const due = needsMore ? await findDue(deps.pool, id, deliveries.ids(), MAX_READ) : [];
      await addPayloads(deps, due);
      if (needsMore) run.hasMore = due.length === MAX_READ;
      if (due.length > 0) run.lastWorkAt = now;
      deliveries.enqueue(run.endpoint, due);
    } else {
      deliveries.clear();
    }
  }
  return run.endpoint?.status === 'enabled';
}

async function addPayloads(deps: WebhookDeps, due: readonly DueDelivery[]): Promise<void> {
  const withoutPayload = due.filter(({ payload }) => payload === null);
  const stored = await savePayloads(
    deps.pool,
    withoutPayload.map((delivery) => ({
      id: delivery.event_id,
      payload: payloadOf({ ...delivery, id: delivery.event_id }, delivery.email ?? undefined),
    })),
  );
  for (const delivery of withoutPayload) delivery.payload = stored.get(delivery.event_id) ?? null;
}

/** Attempts that end while others are being recorded are recorded together by the next call. */
async function record(deps: WebhookDeps, { deliveries }: Run): Promise<void> {
  const ended = deliveries.takeFinished();
  if (ended.length > 0) await persist(() => recordTries(deps.pool, ended));
}

function isIdle({ idleTimeoutMs }: WebhookDeps, { deliveries, lastWorkAt }: Run): boolean {
  return deliveries.isFinished() && deliveries.queuedCount() === 0 && performance.now() - lastWorkAt >= idleTimeoutMs;
}

/** @returns milliseconds until the next delivery is due, null without one; undefined if one is due or about to be */
async function markIdleUnlessDue(deps: WebhookDeps, { id, deliveries }: Run): Promise<number | null | undefined> {
  const rest = await transaction(deps.pool, (client) => markIdle(client, id, deliveries.health()));
  return typeof rest === 'object' ? rest.inMs : undefined;
}
