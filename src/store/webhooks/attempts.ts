import type { Tag } from '../../domain/email/email.ts';
import type { DeliveryStatus } from '../../domain/webhooks.ts';
import { type Db, execute, queryRows } from '../postgres/pool.ts';
import { columns } from '../postgres/columns.ts';

/** A due delivery with its event; if the event has no stored payload, also with its email. */
export interface DueDelivery {
  id: string;
  event_id: string;
  /** Failures since it was created or replayed. */
  tries: number;
  /** When it became due: replaying it changes that. */
  due_at: string;
  type: string;
  created_at: string;
  message_id: string | null;
  data: Record<string, unknown>;
  payload: string | null;
  email: { batch_id: string | null; from: string; to: string[]; subject: string; tags: Tag[] } | null;
}

/** Selected fields of a delivery's event, and of its email if it has no stored payload. */
export const EVENT = `event.message_id, event.data, event.payload,
  CASE WHEN email.id IS NOT NULL THEN json_build_object('batch_id', email.batch_id, 'from', email."from",
    'to', email."to", 'subject', email.subject, 'tags', email.tags) END AS email`;
/** OFFSET 0 prevents a plan that reads all events and emails. */
export const JOIN_EVENT = `CROSS JOIN LATERAL (SELECT * FROM webhook_events WHERE id = delivery.event_id OFFSET 0) AS event
  LEFT JOIN LATERAL (SELECT * FROM emails WHERE id = event.message_id AND event.payload IS NULL OFFSET 0) AS email ON true`;

/**
 * Finds due deliveries of an endpoint, the longest overdue first. They are not locked, because one worker leases the endpoint.
 * @param except ids of deliveries that are in flight
 */
export function findDue(db: Db, endpointId: string, except: readonly string[], limit: number): Promise<DueDelivery[]> {
  return queryRows(db, {
    name: 'find_due',
    text: `SELECT delivery.id, delivery.event_id, delivery.tries, delivery.next_attempt_at AS due_at,
                  event.type, event.created_at, ${EVENT}
           FROM (
             SELECT id, event_id, tries, next_attempt_at FROM webhook_deliveries
             WHERE endpoint_id = $1 AND status = 'pending' AND next_attempt_at <= now() AND id <> ALL ($2::text[])
             ORDER BY next_attempt_at LIMIT $3
           ) AS delivery
           ${JOIN_EVENT}
           ORDER BY delivery.next_attempt_at`,
    values: [endpointId, except, limit],
  });
}

/**
 * Part of a statement whose commit does not wait for the disk. A crash of the database's machine loses the attempts of the last
 * second at most. They are repeated with the same id and the same payload.
 */
const NO_FLUSH = `no_flush AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))`;

/** The result of an attempt, and the new state of its delivery. */
export interface NewAttempt {
  readonly id: string;
  readonly eventId: string;
  /** The due time of the delivery when it was read. If it has changed since, the delivery was replayed: its state is not updated. */
  readonly dueAt: string;
  /** When the attempt began, by Postgres's clock. An attempt that is recorded again is recognized by it. */
  readonly at: string;
  readonly statusCode: number | null;
  readonly durationMs: number;
  readonly response: string | null;
  readonly error: string | null;
  readonly status: DeliveryStatus;
  /** Time until the next attempt of a pending delivery. */
  readonly retryInMs: number | null;
  /** The headers that were sent, if it failed. */
  readonly requestHeaders?: Readonly<Record<string, string>> | undefined;
  /** The URL that answered 410. The delivery then fails, unless its endpoint has another URL by now. */
  readonly goneUrl?: string | undefined;
  /** The payload to store for later attempts; set if the attempt failed and its event has no stored payload. */
  readonly posted?: PostedPayload | undefined;
}

/** A payload, and what it was built from. */
export interface PostedPayload extends Pick<DueDelivery, 'data'> {
  readonly payload: string;
  /** The recipients of the event's email; null for events of something else. */
  readonly to: readonly string[] | null;
}

/** SQL: the endpoint of `delivery` still has the URL that answered 410. */
const IS_GONE = `attempt.gone_url IS NOT NULL
  AND attempt.gone_url = (SELECT url FROM webhook_endpoints WHERE id = delivery.endpoint_id)`;

/**
 * Records the results of attempts, except of deliveries that were deleted meanwhile. It may be repeated, such as when the answer to
 * its commit was lost. A pending delivery is recognized by its `next_attempt_at`: with `status = 'pending'`, a plan that was made
 * for a few rows reads all pending deliveries of all endpoints each time. OFFSET 0 prevents a plan that reads all deliveries.
 */
export async function recordAttempts(db: Db, attempts: readonly NewAttempt[]): Promise<void> {
  await keepPayloads(
    db,
    attempts.flatMap(({ eventId, posted }) => (posted ? [{ eventId, ...posted }] : [])),
  );
  await execute(db, {
    name: 'record_attempts',
    text: `WITH attempt AS MATERIALIZED (
             SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::timestamptz[], $4::integer[], $5::integer[], $6::text[], $7::text[],
                                  $8::text[], $9::float8[], $10::jsonb[], $11::text[])
               AS attempt(id, due_at, at, status_code, duration_ms, response, error, status, retry_in_ms, request_headers, gone_url)
           ), ${NO_FLUSH}, recorded AS (
             INSERT INTO webhook_attempts (delivery_id, at, status_code, duration_ms, response, error, request_headers)
             SELECT id, at, status_code, duration_ms, response, error, request_headers
             FROM attempt, no_flush WHERE EXISTS (SELECT FROM webhook_deliveries WHERE id = attempt.id OFFSET 0)
               AND NOT EXISTS (SELECT FROM webhook_attempts WHERE delivery_id = attempt.id AND at = attempt.at OFFSET 0)
           )
           UPDATE webhook_deliveries AS delivery SET
             status          = CASE WHEN ${IS_GONE} THEN 'failed' ELSE attempt.status END,
             tries           = delivery.tries + 1,
             status_code     = attempt.status_code,
             next_attempt_at = CASE WHEN ${IS_GONE} THEN NULL
                               ELSE clock_timestamp() + attempt.retry_in_ms * interval '1 millisecond' END
           FROM attempt
           WHERE delivery.id = attempt.id AND delivery.id = ANY ($1) AND delivery.next_attempt_at = attempt.due_at`,
    values: [
      ...columns(attempts, 'id', 'dueAt', 'at', 'statusCode', 'durationMs', 'response', 'error', 'status'),
      ...columns(attempts, 'retryInMs', 'requestHeaders', 'goneUrl'),
    ],
  });
}

/**
 * Stores the payloads of failed attempts for later attempts. A stored payload does not change. One whose event or email has been
 * changed by an erasure meanwhile is not stored: the next attempt builds it again.
 */
async function keepPayloads(db: Db, failed: readonly (PostedPayload & { readonly eventId: string })[]): Promise<void> {
  if (failed.length === 0) return;
  await execute(db, {
    name: 'keep_payloads',
    text: `WITH fresh AS MATERIALIZED (
             SELECT id FROM webhook_events WHERE id = ANY ($1) AND payload IS NULL ORDER BY id FOR NO KEY UPDATE
           ), ${NO_FLUSH}
           UPDATE webhook_events AS event SET payload = posted.payload
           FROM unnest($1::text[], $2::text[], $3::jsonb[], $4::jsonb[]) AS posted(id, payload, data, "to"), fresh, no_flush
           WHERE event.id = fresh.id AND event.id = posted.id AND event.id = ANY ($1) AND event.data = posted.data
             AND (SELECT "to" FROM emails WHERE id = event.message_id) IS NOT DISTINCT FROM posted."to"`,
    values: [...columns(failed, 'eventId', 'payload', 'data'), failed.map(({ to }) => to && JSON.stringify(to))],
  });
}
