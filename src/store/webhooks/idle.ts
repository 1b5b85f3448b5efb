import type { EndpointStatus } from '../../domain/webhooks.ts';
import { type Db, queryRow } from '../postgres/pool.ts';

/** An endpoint as the worker sees it. */
export interface OpenEndpoint {
  id: string;
  org_id: string;
  url: string;
  status: EndpointStatus;
  idle: boolean;
  secret: Buffer;
  /** The secret before the last rotation, while it still signs. */
  old_secret: Buffer | null;
}

/** Reads an endpoint for delivery. */
export function openEndpoint(db: Db, id: string): Promise<OpenEndpoint | undefined> {
  return queryRow(db, {
    name: 'open_endpoint',
    text: `SELECT id, org_id, url, status, idle, secret, CASE WHEN old_until > now() THEN old_secret END AS old_secret
           FROM webhook_endpoints WHERE id = $1`,
    values: [id],
  });
}

/**
 * Marks an endpoint as active, so that writers need not wake its workflow. Skipped while another transaction changes the
 * row: an unnecessary wake is harmless.
 */
export async function markActive(db: Db, id: string): Promise<void> {
  await db.query({
    name: 'mark_active',
    text: `UPDATE webhook_endpoints SET idle = false
           WHERE id = (SELECT id FROM webhook_endpoints WHERE id = $1 AND idle FOR NO KEY UPDATE SKIP LOCKED)`,
    values: [id],
  });
}

/** The recent results of an endpoint. */
export interface Health {
  readonly succeeded: boolean;
  readonly failed: boolean;
  /** True if one of the failures was not the first of its delivery. */
  readonly hasRepeatedFailure: boolean;
}

/** The result of `markIdle`: an endpoint with a delivery that is `due`, or `held` by a writer, stays active. */
export type Rest = 'due' | 'held' | { readonly inMs: number | null };

/**
 * Marks an endpoint as idle if nothing is due, in the caller's transaction: no writer holds the row then, and later writers
 * find it idle and wake it. Also records its health.
 * @returns milliseconds until the next delivery is due; null without one
 */
export async function markIdle(db: Db, id: string, health: Health): Promise<Rest> {
  const { rowCount } = await db.query({
    name: 'hold_endpoint',
    // FOR UPDATE is the only row lock that conflicts with that of writers.
    text: `SELECT FROM webhook_endpoints WHERE id = $1 FOR UPDATE SKIP LOCKED`,
    values: [id],
  });
  if (rowCount === 0) return 'held';
  const { rows } = await db.query<{ in_ms: number }>({
    name: 'next_delivery',
    text: `SELECT (extract(epoch FROM next_attempt_at - clock_timestamp()) * 1000)::float8 AS in_ms
           FROM webhook_deliveries WHERE endpoint_id = $1 AND status = 'pending' ORDER BY next_attempt_at LIMIT 1`,
    values: [id],
  });
  const inMs = rows[0]?.in_ms ?? null;
  if (inMs !== null && inMs <= 0) return 'due';
  await recordHealth(db, id, health, true);
  return { inMs };
}

/**
 * Records whether an endpoint has done nothing but fail, and since when; skipped while another transaction changes the row,
 * since the next call records it as well.
 * @param isIdle true if its workflow is idle from now on
 */
export async function recordHealth(db: Db, id: string, { succeeded, failed }: Health, isIdle = false): Promise<void> {
  await db.query({
    name: 'record_health',
    text: `UPDATE webhook_endpoints AS endpoint SET
             idle          = idle OR $4,
             failing_since = CASE WHEN $2 THEN NULL WHEN $3 THEN coalesce(failing_since, now()) ELSE failing_since END
           FROM (SELECT id AS held FROM webhook_endpoints WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED) AS one
           WHERE id = held AND ($4 OR ($2 AND failing_since IS NOT NULL) OR (NOT $2 AND $3 AND failing_since IS NULL))`,
    values: [id, succeeded, failed, isIdle],
  });
}

/** An endpoint that Sendwright has just disabled. */
export interface DisabledEndpoint {
  id: string;
  org_id: string;
  url: string;
  disabled_reason: string;
  failing_since: string | null;
}

/**
 * Disables an endpoint that is enabled.
 * @param failingDays only if it has done nothing but fail for so many days; null disables it in any case
 * @returns the endpoint if this call has disabled it
 */
export function disableEndpoint(
  db: Db,
  id: string,
  reason: string,
  failingDays: number | null,
): Promise<DisabledEndpoint | undefined> {
  return queryRow(db, {
    name: 'disable_endpoint',
    text: `UPDATE webhook_endpoints SET status = 'disabled', disabled_reason = $2, disabled_at = now()
           WHERE id = $1 AND status = 'enabled'
             AND ($3::integer IS NULL OR failing_since <= now() - make_interval(hours => 24 * $3))
           RETURNING id, org_id, url, disabled_reason, failing_since`,
    values: [id, reason, failingDays],
  });
}

/**
 * Wakes endpoints with a delivery that has been due for a minute: their workflow may be lost.
 * @param after the id that the previous call returned, or null
 * @returns the last of the `limit` endpoints that were checked, and the number of woken ones
 */
export async function wakeOverdue(
  db: Db,
  after: string | null,
  limit: number,
): Promise<{ woken: number; last: string | null }> {
  const { rows } = await db.query<{ woken: number; last: string | null }>(
    `WITH looked AS MATERIALIZED (
       SELECT id FROM webhook_endpoints WHERE id > coalesce($1, '') AND status = 'enabled' ORDER BY id LIMIT $2
     ), woken AS (
       INSERT INTO outbox (message_id, action)
       SELECT id, 'webhook' FROM looked
       WHERE EXISTS (
           SELECT FROM webhook_deliveries
           WHERE endpoint_id = looked.id AND status = 'pending' AND next_attempt_at < now() - interval '1 minute'
         )
         AND NOT EXISTS (SELECT FROM outbox WHERE message_id = looked.id AND action = 'webhook')
       RETURNING id
     )
     SELECT (SELECT count(*)::int FROM woken) AS woken, CASE WHEN count(*) = $2 THEN max(id) END AS last FROM looked`,
    [after, limit],
  );
  return rows[0] ?? { woken: 0, last: null };
}
