import { notFound, requireFound, ServiceError } from '../domain/errors.ts';
import type { EventType } from '../domain/event-types.ts';
import { newId } from '../lib/ids.ts';
import { parseInstant } from '../domain/instant.ts';
import { parseRanges, type Ranges } from '../lib/ip-ranges.ts';
import { deriveKeys, type SecretKeys } from '../lib/secret-key.ts';
import { makeSeal, type Seal } from '../lib/seal.ts';
import { type DeliveryStatus, ENDPOINT_URL_LENGTH, OLD_SECRET_HOURS } from '../domain/webhooks.ts';
import { endpointUrl, requireFetchable } from '../public-fetch/endpoint-url.ts';
import { Unfetchable } from '../public-fetch/unfetchable.ts';
import { readClock } from '../store/postgres/clock.ts';
import type { Cursor } from '../store/postgres/page.ts';
import type { Db, Pool } from '../store/postgres/pool.ts';
import {
  addDelivery,
  type Delivery,
  findAttempts,
  findDelivery,
  replayDelivery,
  replayPeriod,
} from '../store/webhooks/deliveries.ts';
import {
  changeEndpoint,
  deleteEndpoint,
  type Endpoint,
  type EndpointChange,
  findEndpoint,
  insertEndpoint,
  rotateSecret,
} from '../store/webhooks/endpoints.ts';
import { openEndpoint } from '../store/webhooks/leases.ts';
import { payloadOfDelivery } from '../webhooks/payload.ts';
import { newSecret, formatSecret } from '../webhooks/signature.ts';
import { type OrganizationLimits, UNLIMITED_ORGANIZATION, withinLimit } from './organization-limits.ts';

export interface EndpointDeps {
  readonly pool: Pool;
  /** Called after each commit that may have added outbox rows or webhook deliveries that are due. */
  readonly wakeRelay: () => void;
  readonly seal: Seal;
  /** Ranges of the operator's network in which endpoints are allowed. */
  readonly allowed: Ranges;
  readonly limits: OrganizationLimits;
}

export function makeEndpointDeps(
  pool: Pool,
  wakeRelay: () => void,
  secretKey: SecretKeys,
  allowedCidrs: readonly string[],
  limits = UNLIMITED_ORGANIZATION,
): EndpointDeps {
  return { pool, wakeRelay, seal: webhookSeal(secretKey), allowed: parseRanges(allowedCidrs), limits };
}

export function webhookSeal(secretKey: SecretKeys): Seal {
  return makeSeal(deriveKeys(secretKey, 'webhook secrets'));
}

/** A request for an endpoint. An empty `events` subscribes to all types. */
export interface EndpointRequest {
  readonly url: string;
  readonly events: readonly EventType[];
  readonly description: string | null;
}

/**
 * Creates an endpoint, which receives events from now on. The response contains its secret.
 * @throws ServiceError validation_error for its URL, or limit_exceeded
 */
export async function createEndpoint(
  { pool, seal, allowed, limits }: EndpointDeps,
  orgId: string,
  { url, events, description }: EndpointRequest,
): Promise<Endpoint & { secret: string }> {
  refuseBadUrl(allowed, url);
  return withinLimit(pool, limits, 'endpoints', orgId, async (client) => {
    const id = newId('wh');
    const secret = newSecret();
    const request = { id, url, events: [...new Set(events)], description: description === '' ? null : description };
    const endpoint = await insertEndpoint(client, orgId, request, seal.close(secret, id));
    return { ...endpoint, secret: formatSecret(secret) };
  });
}

/** Changes an endpoint. @throws ServiceError not_found, or validation_error for its URL */
export async function editEndpoint(
  deps: EndpointDeps,
  orgId: string,
  id: string,
  change: EndpointChange,
): Promise<Endpoint> {
  if (change.url != null) refuseBadUrl(deps.allowed, change.url);
  const events = change.events && [...new Set(change.events)];
  const changed = await changeEndpoint(deps.pool, orgId, id, { ...change, events });
  if (changed && change.status) deps.wakeRelay();
  return requireFound(changed, 'webhook endpoint');
}

/** @throws ServiceError validation_error */
function refuseBadUrl(allowed: Ranges, url: string): void {
  requireFetchable('url', () => {
    if (url.length > ENDPOINT_URL_LENGTH) throw new Unfetchable('it is too long');
    endpointUrl(url, allowed);
  });
}

/** @throws ServiceError not_found */
export async function removeEndpoint({ pool }: Pick<EndpointDeps, 'pool'>, orgId: string, id: string): Promise<void> {
  if (!(await deleteEndpoint(pool, orgId, id))) throw notFound('webhook endpoint');
}

/**
 * Rotates an endpoint's secret; the response contains the new one. For 24 hours the old secret signs as well.
 * @throws ServiceError not_found
 */
export async function rotateEndpoint(
  deps: EndpointDeps,
  orgId: string,
  id: string,
): Promise<Endpoint & { secret: string }> {
  const secret = newSecret();
  const endpoint = await rotateSecret(deps.pool, orgId, id, deps.seal.close(secret, id), OLD_SECRET_HOURS);
  return { ...requireFound(endpoint, 'webhook endpoint'), secret: formatSecret(secret) };
}

/**
 * Returns an endpoint with its secret.
 * @throws ServiceError not_found
 */
export async function revealSecret(
  { pool, seal }: EndpointDeps,
  orgId: string,
  id: string,
): Promise<Endpoint & { secret: string }> {
  const endpoint = await requireEndpoint(pool, orgId, id);
  const { secret } = requireFound(await openEndpoint(pool, id), 'webhook endpoint');
  return { ...endpoint, secret: formatSecret(seal.open(secret, id)) };
}

/**
 * Sends a test event to an endpoint, even if it is not subscribed to the type.
 * @throws ServiceError not_found, or conflict if it is disabled
 */
export async function testEndpoint(deps: EndpointDeps, orgId: string, id: string): Promise<Delivery> {
  await requireEndpoint(deps.pool, orgId, id);
  const event = { id: newId('evt'), type: 'webhook.test', data: { webhookId: id } };
  const delivery = await addDelivery(deps.pool, id, event);
  if (!delivery) throw endpointDisabled();
  deps.wakeRelay();
  return delivery;
}

/**
 * Sends a delivery again with the full number of attempts.
 * @throws ServiceError not_found, or conflict if the endpoint is disabled
 */
export async function replayOne(deps: EndpointDeps, orgId: string, id: string, deliveryId: string): Promise<Delivery> {
  await requireEndpoint(deps.pool, orgId, id);
  requireFound(await findDelivery(deps.pool, id, deliveryId), 'delivery');
  const delivery = await replayDelivery(deps.pool, id, deliveryId);
  if (!delivery) throw endpointDisabled();
  deps.wakeRelay();
  return delivery;
}

/** A period of event times, including both ends, and an optional status of the deliveries. */
export interface Period {
  readonly since: string;
  readonly until: string | null;
  readonly status: DeliveryStatus | null;
}

/** Limits the deliveries per statement, because the statement blocks inserts of new ones. */
const DELIVERIES_PER_STATEMENT = 2_000;

/**
 * Sends all deliveries of a period again, each with the full number of attempts.
 * @returns the number of deliveries
 * @throws ServiceError not_found, validation_error for a period that ends before it begins, or conflict if the endpoint is
 * disabled
 */
export async function replayMany(deps: EndpointDeps, orgId: string, id: string, period: Period): Promise<number> {
  const since = instant(period.since);
  const requestedUntil = period.until === null ? null : instant(period.until);
  if (requestedUntil !== null && requestedUntil < since)
    throw new ServiceError('validation_error', 'must not be before since', 'until');
  const { status } = await requireEndpoint(deps.pool, orgId, id);
  if (status === 'disabled') throw endpointDisabled();
  // What happens from now on is delivered anyway; a later statement would deliver it a second time.
  const now = (await readClock(deps.pool)).toISOString();
  const until = requestedUntil !== null && requestedUntil < now ? requestedUntil : now;
  let total = 0;
  for (let after: Cursor | null = null; ;) {
    const { replayed, last, hasMore } = await replayPeriod(
      deps.pool,
      id,
      { since, until, status: period.status },
      after,
      DELIVERIES_PER_STATEMENT,
    );
    total += replayed;
    if (replayed > 0) deps.wakeRelay();
    if (!hasMore) return total;
    after = last;
  }
}

/** The schema has already validated the text. */
function instant(text: string): string {
  return (parseInstant(text) as Date).toISOString();
}

/** @throws ServiceError not_found */
export async function requireEndpoint(db: Db, orgId: string, id: string): Promise<Endpoint> {
  return requireFound(await findEndpoint(db, orgId, id), 'webhook endpoint');
}

function endpointDisabled(): ServiceError {
  return new ServiceError('conflict', 'this endpoint is disabled; enable it first');
}

/**
 * Returns a delivery with its payload and attempts.
 * @throws ServiceError not_found
 */
export async function requireDelivery(db: Db, orgId: string, id: string, deliveryId: string) {
  const endpoint = await requireEndpoint(db, orgId, id);
  const delivery = requireFound(await findDelivery(db, id, deliveryId), 'delivery');
  const attempts = await findAttempts(db, delivery.id);
  return { endpoint, delivery, payload: JSON.parse(payloadOfDelivery(delivery)) as unknown, attempts };
}
