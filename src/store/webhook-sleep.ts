import type { EndpointStatus } from '../domain/webhooks.ts';
import type { Db } from './pool.ts';

/** An endpoint as the worker sees it. */
export interface OpenEndpoint {
  id: string;
  org_id: string;
  url: string;
  status: EndpointStatus;
  idle: boolean;
  secret: Buffer;
  /** The one before the last rotation, while it still signs. */
  old_secret: Buffer | null;
}

/** The endpoint that deliveries are about to go to, as of now. */
export async function openEndpoint(db: Db, id: string): Promise<OpenEndpoint | undefined> {
  const { rows } = await db.query<OpenEndpoint>({
    name: 'open_endpoint',
    text: `SELECT id, org_id, url, status, idle, secret, CASE WHEN old_until > now() THEN old_secret END AS old_secret
           FROM webhook_endpoints WHERE id = $1`,
    values: [id],
  });
  return rows[0];
}

/**
 * Marks an endpoint as active, so that writers need not wake its workflow. Left for another time while another transaction
 * changes the row: a wake too many does no harm.
 */
export async function noteAwake(db: Db, id: string): Promise<void> {
  await db.query({
    name: 'note_awake',
    text: `UPDATE webhook_endpoints SET idle = false
           WHERE id = (SELECT id FROM webhook_endpoints WHERE id = $1 AND idle FOR NO KEY UPDATE SKIP LOCKED)`,
    values: [id],
  });
}

/** How an endpoint has fared of late. */
export interface Health {
  readonly succeeded: boolean;
  readonly failed: boolean;
  /** Whether one of the failures was not the first of its delivery. */
  readonly telling: boolean;
}

/** What came of laying an endpoint to sleep: `due` or `held` by a writer, and then it is awake as before. */
export type Rest = 'due' | 'held' | { readonly inMs: number | null };

/**
 * Lays an endpoint's workflow to sleep when nothing is due, in the caller's transaction: no writer holds the row then, and
 * whoever comes later finds it idle and wakes it. Also notes how it has fared.
 * @returns milliseconds until the next delivery is due; null without one
 */
export async function layToSleep(db: Db, id: string, health: Health, failingDays: number): Promise<Rest> {
  const { rowCount } = await db.query({
    name: 'hold_endpoint',
    // FOR UPDATE: the only row lock that waits for writers, and that they wait for.
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
  await noteHealth(db, id, health, failingDays, true);
  return { inMs };
}

/**
 * Notes how an endpoint has fared, unless another transaction changes the row: then the next time will do. One that has done nothing
 * but fail for so many days is disabled.
 * @param sleeps whether its workflow sleeps from now on
 */
export async function noteHealth(
  db: Db,
  id: string,
  { succeeded, failed, telling }: Health,
  failingDays: number,
  sleeps = false,
): Promise<void> {
  await db.query({
    name: 'note_health',
    text: `UPDATE webhook_endpoints AS endpoint SET
             idle            = idle OR $5,
             failing_since   = CASE WHEN $2 THEN NULL WHEN $3 THEN coalesce(failing_since, now()) ELSE failing_since END,
             status          = CASE WHEN fails THEN 'disabled' ELSE status END,
             disabled_reason = CASE WHEN fails THEN 'every try of ' || $6::int || ' days has failed' ELSE disabled_reason END
           FROM (
             SELECT id AS held, NOT $2 AND $4 AND status = 'enabled' AND failing_since <= now() - make_interval(hours => 24 * $6)
                      IS TRUE AS fails
             FROM webhook_endpoints WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED
           ) AS one
           WHERE id = held AND ($5 OR fails OR ($2 AND failing_since IS NOT NULL) OR (NOT $2 AND $3 AND failing_since IS NULL))`,
    values: [id, succeeded, failed, telling, sleeps, failingDays],
  });
}

/** Disables an endpoint at once, for a reason that its owner is told. */
export async function disableEndpoint(db: Db, id: string, reason: string): Promise<void> {
  await db.query(
    `UPDATE webhook_endpoints SET status = 'disabled', disabled_reason = $2 WHERE id = $1 AND status = 'enabled'`,
    [id, reason],
  );
}

/**
 * Leaves word for the relay about endpoints that have had something due for a minute: their workflow was lost, or is
 * about to come to it.
 * @param after id of the last endpoint that was looked at, or null
 * @returns the last one of `limit` that this call has looked at, and how many it has woken
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
