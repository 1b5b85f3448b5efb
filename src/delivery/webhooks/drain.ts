import { FAILING_DAYS } from '../../domain/webhooks.ts';
import { disableAndNotify } from '../../projection/endpoints.ts';
import { type Pool, transaction } from '../../store/postgres/pool.ts';
import {
  type Health,
  layToSleep,
  noteAwake,
  noteHealth,
  openEndpoint,
  type OpenEndpoint,
} from '../../store/webhooks/idle.ts';
import { type DueDelivery, findDue, keepPayloads, recordTries } from '../../store/webhooks/attempts.ts';
import { payloadOf } from '../../webhooks/payload.ts';
import { persist } from '../persist.ts';
import type { Drained, WebhookDeps } from './contract.ts';
import { type Flight, IN_FLIGHT, makeFlight } from './in-flight.ts';

/** Deliveries read at once: what is in memory of one endpoint, 20 kB each at most. */
const TAKE = 200;
/** Milliseconds for which new tries are begun: endpoints may be more than a worker has places. */
const BEGIN_WITHIN = 30_000;
/** Milliseconds between two looks. */
const LOOK_EVERY = 100;

/** One endpoint's work for some seconds. */
interface Shift {
  readonly id: string;
  readonly flight: Flight;
  /** As it was read last: undefined before, null when it was deleted. */
  endpoint: OpenEndpoint | null | undefined;
  /** Whether there was more than was read. */
  more: boolean;
  /** Of the monotonic clock, in milliseconds: when to look again, and when there was work last. */
  lookAt: number;
  busyAt: number;
}

/** Posts what is due to an endpoint until nothing has been for a while, or it is somebody else's turn. */
export async function drain(deps: WebhookDeps, id: string): Promise<Drained> {
  const began = performance.now();
  const goesOn = () => performance.now() - began < BEGIN_WITHIN && !deps.stopping.aborted;
  const flight = makeFlight(deps, goesOn);
  const shift: Shift = { id, flight, endpoint: undefined, more: false, lookAt: 0, busyAt: began };
  try {
    for (;;) {
      await record(deps, shift);
      const isServing = goesOn() && !flight.isGone() && (await look(deps, shift));
      if (!isServing && flight.isOver()) return await leave(deps, shift);
      if (isServing && isQuiet(deps, shift)) {
        const inMs = await sleepUnlessDue(deps, shift);
        if (inMs !== undefined) {
          const isDisabled = await isDisabledForFailing(deps.pool, id, flight.health());
          return isDisabled ? { state: 'closed' } : { state: 'asleep', inMs };
        }
      }
      await flight.news(isServing ? shift.lookAt : Infinity);
    }
  } finally {
    flight.close();
  }
}

/** Ends a shift although there may be more to do. */
async function leave({ pool }: WebhookDeps, { id, flight, endpoint }: Shift): Promise<Drained> {
  if (flight.isGone()) await disableAndNotify(pool, id, 'it answered 410 Gone', null);
  if (flight.isGone() || endpoint === null || endpoint?.status === 'disabled') return { state: 'closed' };
  await noteHealth(pool, id, flight.health());
  return (await isDisabledForFailing(pool, id, flight.health())) ? { state: 'closed' } : { state: 'again' };
}

/**
 * Disables an endpoint that has done nothing but fail for five days. In a transaction of its own: one that marks an endpoint
 * idle holds its row FOR UPDATE, and two of those that notify each other's endpoint would wait in a circle.
 */
async function isDisabledForFailing(pool: Pool, id: string, { succeeded, telling }: Health): Promise<boolean> {
  if (succeeded || !telling) return false;
  return disableAndNotify(pool, id, `every try of ${FAILING_DAYS} days has failed`, FAILING_DAYS);
}

/**
 * Reads the endpoint as it is now, since its owner may have changed it, and what is due once little is left.
 * @returns whether it is there and enabled
 */
async function look(deps: WebhookDeps, shift: Shift): Promise<boolean> {
  const { id, flight } = shift;
  const isHungry = flight.waiting() < IN_FLIGHT;
  const now = performance.now();
  if (now >= shift.lookAt || (isHungry && shift.more)) {
    shift.lookAt = now + LOOK_EVERY;
    shift.endpoint = (await openEndpoint(deps.pool, id)) ?? null;
    if (shift.endpoint?.status === 'enabled') {
      if (shift.endpoint.idle) await noteAwake(deps.pool, id);
      const due = isHungry ? await findDue(deps.pool, id, flight.ids(), TAKE) : [];
      await addPayloads(deps, due);
      if (isHungry) shift.more = due.length === TAKE;
      if (due.length > 0) shift.busyAt = now;
      flight.serve(shift.endpoint, due);
    } else {
      flight.drop();
    }
  }
  return shift.endpoint?.status === 'enabled';
}

async function addPayloads(deps: WebhookDeps, due: readonly DueDelivery[]): Promise<void> {
  const bare = due.filter(({ payload }) => payload === null);
  const kept = await keepPayloads(
    deps.pool,
    bare.map((delivery) => ({
      id: delivery.event_id,
      payload: payloadOf({ ...delivery, id: delivery.event_id }, delivery.email ?? undefined),
    })),
  );
  for (const delivery of bare) delivery.payload = kept.get(delivery.event_id) ?? null;
}

/** Tries that end while others are written down are written down together. */
async function record(deps: WebhookDeps, { flight }: Shift): Promise<void> {
  const ended = flight.landed();
  if (ended.length > 0) await persist(() => recordTries(deps.pool, ended));
}

function isQuiet({ lingers }: WebhookDeps, { flight, busyAt }: Shift): boolean {
  return flight.isOver() && flight.waiting() === 0 && performance.now() - busyAt >= lingers;
}

/** @returns milliseconds until the next is due, null for none; undefined when something is, or a writer is about to say so */
async function sleepUnlessDue(deps: WebhookDeps, { id, flight }: Shift): Promise<number | null | undefined> {
  const rest = await transaction(deps.pool, (client) => layToSleep(client, id, flight.health()));
  return typeof rest === 'object' ? rest.inMs : undefined;
}
