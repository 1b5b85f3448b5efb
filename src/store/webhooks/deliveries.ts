import { DELIVERY_STATUSES, type DeliveryStatus, MAX_SHOWN_ATTEMPTS } from '../../domain/webhooks.ts';
import { type Cursor, cursorValues } from '../postgres/page.ts';
import { type Db, queryOneRow, queryRow, queryRows } from '../postgres/pool.ts';
import { type DueDelivery, EVENT, JOIN_EVENT } from './attempts.ts';

/** A delivery as lists show it. */
export interface Delivery {
  id: string;
  event_id: string;
  type: string;
  status: DeliveryStatus;
  created_at: string;
  next_attempt_at: string | null;
}

const DELIVERY = 'id, event_id, type, status, created_at, next_attempt_at';

/**
 * Returns SQL of an endpoint's deliveries with any of some statuses, in the order of their acceptance. The index has them by
 * status, so as many of each status are read as of all together.
 * @param statuses SQL of the statuses
 * @param where SQL of further conditions
 */
export const deliveriesBy = (statuses: string, where: string, order: 'ASC' | 'DESC', limit: string): string => `
  SELECT delivery.* FROM unnest(${statuses}::text[]) AS wanted(status) CROSS JOIN LATERAL (
    SELECT * FROM webhook_deliveries WHERE status = wanted.status AND ${where}
    ORDER BY created_at ${order}, id ${order} LIMIT ${limit}
  ) AS delivery ORDER BY created_at ${order}, id ${order} LIMIT ${limit}`;

/** The statuses that `deliveriesBy` reads: one, or all for null. */
export const statusesOf = (status: DeliveryStatus | null): readonly DeliveryStatus[] =>
  status === null ? DELIVERY_STATUSES : [status];

/** Deliveries of an endpoint, newest first. */
export function listDeliveries(
  db: Db,
  endpointId: string,
  status: DeliveryStatus | null,
  after: Cursor | null,
  limit: number,
): Promise<Delivery[]> {
  return queryRows(db, {
    name: 'list_deliveries',
    text: `SELECT ${DELIVERY} FROM (${deliveriesBy(
      '$5',
      'endpoint_id = $1 AND (created_at, id) < ($2::timestamptz, $3)',
      'DESC',
      '$4',
    )}) AS page`,
    values: [endpointId, ...cursorValues(after), limit, statusesOf(status)],
  });
}

/** One attempt of a delivery. */
export interface DeliveryAttempt {
  at: string;
  status_code: number | null;
  duration_ms: number;
  response: string | null;
  error: string | null;
}

/** An attempt with the headers that were sent, which are kept if it failed. */
export interface AttemptWithHeaders extends DeliveryAttempt {
  request_headers: Record<string, string> | null;
}

/** One delivery of an endpoint with its event. */
export function findDelivery(
  db: Db,
  endpointId: string,
  id: string,
): Promise<(Delivery & Omit<DueDelivery, 'tries' | 'due_at'>) | undefined> {
  return queryRow<Delivery & Omit<DueDelivery, 'tries' | 'due_at'>>(
    db,
    `SELECT delivery.*, ${EVENT}
     FROM (SELECT ${DELIVERY} FROM webhook_deliveries WHERE id = $1 AND endpoint_id = $2) AS delivery
     ${JOIN_EVENT}`,
    [id, endpointId],
  );
}

/** Lists the latest attempts of a delivery, oldest first. */
export function findAttempts(db: Db, deliveryId: string): Promise<AttemptWithHeaders[]> {
  return queryRows(
    db,
    `SELECT * FROM (
       SELECT at, status_code, duration_ms, response, error, request_headers FROM webhook_attempts
       WHERE delivery_id = $1 ORDER BY at DESC LIMIT $2
     ) AS latest ORDER BY at`,
    [deliveryId, MAX_SHOWN_ATTEMPTS],
  );
}

/** Part of a statement: the endpoint `$1` if it is enabled. */
const ENABLED = `enabled AS MATERIALIZED (SELECT id, org_id FROM webhook_endpoints WHERE id = $1 AND status = 'enabled')`;

/** Enqueues an event for one enabled endpoint, even if it does not subscribe to the type. */
export function addDelivery(
  db: Db,
  endpointId: string,
  event: { id: string; type: string; data: Record<string, unknown> },
): Promise<Delivery | undefined> {
  return queryRow(
    db,
    `WITH ${ENABLED}, kept AS (
       INSERT INTO webhook_events (id, org_id, type, created_at, data) SELECT $2, org_id, $3, now(), $4::jsonb FROM enabled
     )
     INSERT INTO webhook_deliveries (id, endpoint_id, event_id, type, created_at, next_attempt_at)
     SELECT delivery_id($2, id), id, $2, $3, now(), now() FROM enabled
     RETURNING ${DELIVERY}`,
    [endpointId, event.id, event.type, JSON.stringify(event.data)],
  );
}

const AGAIN = `status = 'pending', tries = 0, next_attempt_at = clock_timestamp()`;

/** Replays a delivery of an enabled endpoint, in any state. */
export function replayDelivery(db: Db, endpointId: string, id: string): Promise<Delivery | undefined> {
  return queryRow(
    db,
    `WITH ${ENABLED}
     UPDATE webhook_deliveries SET ${AGAIN} WHERE id = $2 AND endpoint_id = (SELECT id FROM enabled)
     RETURNING ${DELIVERY}`,
    [endpointId, id],
  );
}

/**
 * Replays deliveries of a period, oldest first. At most `limit` are selected; those that are deleted meanwhile are not replayed.
 * @param after the last one of the previous call, or null
 * @returns the number of replayed deliveries, the last selected one, and whether there may be more
 */
export async function replayPeriod(
  db: Db,
  endpointId: string,
  { since, until, status }: { since: string; until: string; status: DeliveryStatus | null },
  after: Cursor | null,
  limit: number,
): Promise<{ replayed: number; last: Cursor | null; hasMore: boolean }> {
  const rows = await queryRows<Cursor & { is_replayed: boolean }>(
    db,
    `WITH ${ENABLED}, chosen AS MATERIALIZED (
       SELECT delivery.created_at, delivery.id FROM enabled CROSS JOIN LATERAL (${deliveriesBy(
         '$4',
         `endpoint_id = enabled.id AND created_at BETWEEN $2 AND $3
          AND (created_at, id) > (coalesce($5::timestamptz, '-infinity'), coalesce($6, ''))`,
         'ASC',
         '$7',
       )}) AS delivery
     ), written AS (
       UPDATE webhook_deliveries SET ${AGAIN} FROM chosen WHERE webhook_deliveries.id = chosen.id
       RETURNING webhook_deliveries.id
     )
     SELECT created_at, id, written.id IS NOT NULL AS is_replayed
     FROM chosen LEFT JOIN written USING (id) ORDER BY created_at, id`,
    [endpointId, since, until, statusesOf(status), after?.created_at ?? null, after?.id ?? null, limit],
  );
  const replayed = rows.filter(({ is_replayed }) => is_replayed).length;
  return { replayed, last: rows.at(-1) ?? null, hasMore: rows.length === limit };
}

/**
 * Deletes deliveries with their attempts, and events, with older ids than `before`, at most `limit` of each. A delivery whose event
 * is deleted first is not posted.
 * @param before the time of ids, as `idTime` writes it
 * @returns the number of deleted deliveries or events, whichever is larger
 */
export async function deleteOldDeliveries(db: Db, before: string, limit: number): Promise<number> {
  const { deliveries, events } = await queryOneRow<{ deliveries: number; events: number }>(
    db,
    `WITH old AS MATERIALIZED (
       SELECT id FROM webhook_deliveries WHERE id < 'whd_' || $1 ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED
     ), tries AS (
       DELETE FROM webhook_attempts USING old WHERE delivery_id = old.id
     ), deliveries AS (
       DELETE FROM webhook_deliveries USING old WHERE webhook_deliveries.id = old.id
     ), events AS (
       DELETE FROM webhook_events WHERE id IN (
         SELECT id FROM webhook_events WHERE id < 'evt_' || $1 ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED)
       RETURNING id
     )
     SELECT (SELECT count(*)::int FROM old) AS deliveries, (SELECT count(*)::int FROM events) AS events`,
    [before, limit],
  );
  return Math.max(deliveries, events);
}
