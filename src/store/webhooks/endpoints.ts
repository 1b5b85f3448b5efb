import type { EventType } from '../../domain/event-types.ts';
import type { EndpointStatus } from '../../domain/webhooks.ts';
import { latestOf } from '../postgres/page.ts';
import { type Db, executeOne, queryOneRow, queryRow } from '../postgres/pool.ts';

/** An endpoint as its owner sees it. */
export interface Endpoint {
  id: string;
  url: string;
  description: string | null;
  /** The types that it subscribes to; empty means all. */
  events: string[];
  status: EndpointStatus;
  /** The reason if Sendwright disabled it; null if its owner did. */
  disabled_reason: string | null;
  /** Null while it is enabled. */
  disabled_at: string | null;
  failing_since: string | null;
  created_at: string;
}

const ENDPOINT = 'id, url, description, events, status, disabled_reason, disabled_at, failing_since, created_at';

export function insertEndpoint(
  db: Db,
  orgId: string,
  endpoint: Pick<Endpoint, 'id' | 'url' | 'description' | 'events'>,
  secret: Buffer,
): Promise<Endpoint> {
  return queryOneRow(
    db,
    `INSERT INTO webhook_endpoints (id, org_id, url, description, events, secret) VALUES ($1, $2, $3, $4, $5, $6)
     RETURNING ${ENDPOINT}`,
    [endpoint.id, orgId, endpoint.url, endpoint.description, endpoint.events, secret],
  );
}

export function findEndpoint(db: Db, orgId: string, id: string): Promise<Endpoint | undefined> {
  return queryRow(db, `SELECT ${ENDPOINT} FROM webhook_endpoints WHERE id = $1 AND org_id = $2`, [id, orgId]);
}

/** Endpoints of an organization, newest first. */
export const listEndpoints = latestOf<Endpoint>('webhook_endpoints', ENDPOINT);

/** The fields that the owner may change. Those that are undefined or null stay unchanged. */
export interface EndpointChange {
  readonly url?: string | null;
  readonly events?: readonly EventType[] | null | undefined;
  /** Empty removes it. */
  readonly description?: string | null;
  readonly status?: EndpointStatus | null;
}

/** Pending deliveries that are due at once when their endpoint is enabled; later ones keep their times. */
const DUE_WHEN_ENABLED = 10_000;

/**
 * Changes the given fields of an endpoint. Its health is reset when it is enabled or gets another URL; enabling it makes its
 * pending deliveries due.
 */
export function changeEndpoint(
  db: Db,
  orgId: string,
  id: string,
  change: EndpointChange,
): Promise<Endpoint | undefined> {
  return queryRow(
    db,
    `WITH due AS (
       UPDATE webhook_deliveries SET next_attempt_at = now() WHERE id IN (
         SELECT delivery.id FROM webhook_endpoints AS disabled JOIN webhook_deliveries AS delivery ON endpoint_id = disabled.id
         WHERE disabled.id = $1 AND org_id = $2 AND disabled.status = 'disabled' AND $6 = 'enabled'
           AND delivery.status = 'pending' AND next_attempt_at > now()
         ORDER BY next_attempt_at LIMIT ${DUE_WHEN_ENABLED}
       )
     )
     UPDATE webhook_endpoints AS endpoint SET
       url             = coalesce($3, url),
       description     = CASE WHEN $4::text IS NULL THEN description ELSE nullif($4, '') END,
       events          = coalesce($5, events),
       status          = coalesce($6, status),
       disabled_reason = CASE WHEN $6::text IS NULL THEN disabled_reason END,
       disabled_at     = CASE WHEN $6 = 'enabled' THEN NULL WHEN $6 = 'disabled' AND status = 'enabled' THEN now() ELSE disabled_at END,
       failing_since   = CASE WHEN $6 = 'enabled' AND status = 'disabled' OR $3 <> url THEN NULL ELSE failing_since END
     WHERE id = $1 AND org_id = $2
     RETURNING ${ENDPOINT}`,
    [id, orgId, change.url ?? null, change.description ?? null, change.events ?? null, change.status ?? null],
  );
}

/** An endpoint that Sendwright has just disabled. */
interface DisabledEndpoint {
  id: string;
  org_id: string;
  url: string;
  disabled_reason: string;
  failing_since: string | null;
}

/** The state in which an endpoint is disabled: it still has this URL, or all attempts of so many days have failed. */
export type DisableCondition = { readonly url: string } | { readonly failingDays: number };

/**
 * Disables an endpoint that is enabled, if the condition is true.
 * @returns the endpoint if this call has disabled it
 */
export function disableEndpoint(
  db: Db,
  id: string,
  reason: string,
  condition: DisableCondition,
): Promise<DisabledEndpoint | undefined> {
  return queryRow(db, {
    name: 'disable_endpoint',
    text: `UPDATE webhook_endpoints SET status = 'disabled', disabled_reason = $2, disabled_at = now()
           WHERE id = $1 AND status = 'enabled'
             AND (url = $3 OR failing_since <= now() - make_interval(hours => 24 * $4::integer))
           RETURNING id, org_id, url, disabled_reason, failing_since`,
    values: [
      id,
      reason,
      'url' in condition ? condition.url : null,
      'failingDays' in condition ? condition.failingDays : null,
    ],
  });
}

/** Limits the duration of a deletion. Deliveries beyond it stay pending until they are deleted, but are never posted. */
const MAX_ENDED_DELIVERIES = 10_000;

/**
 * Deletes an endpoint and ends up to MAX_ENDED_DELIVERIES of its pending deliveries, because the polls of the dispatcher visit
 * every endpoint id with a pending delivery. Upkeep deletes the deliveries later.
 * @returns false if there is no such endpoint
 */
export async function deleteEndpoint(db: Db, orgId: string, id: string): Promise<boolean> {
  return executeOne(
    db,
    `WITH deleted AS (
       DELETE FROM webhook_endpoints WHERE id = $1 AND org_id = $2 RETURNING id
     ), ended AS (
       UPDATE webhook_deliveries SET status = 'failed', next_attempt_at = NULL
       WHERE id = ANY (ARRAY(
         SELECT delivery.id FROM deleted JOIN webhook_deliveries AS delivery ON delivery.endpoint_id = deleted.id
         WHERE delivery.status = 'pending' LIMIT $3
       ))
     )
     SELECT FROM deleted`,
    [id, orgId, MAX_ENDED_DELIVERIES],
  );
}

/**
 * Replaces the secret of an endpoint. Of the secrets before the previous one, the oldest that still signs keeps its end: after
 * several rotations, the receiver may still verify with it.
 * @param hours the time for which the previous secret also signs
 */
export function rotateSecret(
  db: Db,
  orgId: string,
  id: string,
  secret: Buffer,
  hours: number,
): Promise<Endpoint | undefined> {
  return queryRow(
    db,
    `UPDATE webhook_endpoints
     SET secret = $3, old_secret = secret, old_until = now() + make_interval(hours => $4),
         older_secret = CASE WHEN older_until > now() THEN older_secret WHEN old_until > now() THEN old_secret END,
         older_until = CASE WHEN older_until > now() THEN older_until WHEN old_until > now() THEN old_until END
     WHERE id = $1 AND org_id = $2 RETURNING ${ENDPOINT}`,
    [id, orgId, secret, hours],
  );
}
