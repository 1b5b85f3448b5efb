import { DELIVERY_STATUSES, type DeliveryStatus } from '../../domain/webhooks.ts';
import { type Cursor, cursorValues, cutReadPage, type Page, type ReadRow } from '../postgres/page.ts';
import { type Db, queryRows } from '../postgres/pool.ts';
import { deliveriesBy, type Delivery, statusesOf } from './deliveries.ts';

/** A delivery with the details that explain a failure. */
export interface FoundDelivery extends Delivery {
  /** The number of attempts since it was created or replayed. */
  tries: number;
  /** The status code of the response to the latest attempt; null without a response. */
  status_code: number | null;
  /** The email of the event. */
  message_id: string | null;
  /** False if the record of the email was deleted. */
  has_email: boolean;
  /** The recipient that the event concerns. */
  recipient: string | null;
}

/** Responses by the first digit of their status codes; `none` is no response. */
export const RESPONSES = ['2xx', '3xx', '4xx', '5xx', 'none'] as const;

/** The conditions of a search; a delivery must meet all of them. Null is no condition. */
export interface DeliveryFilters {
  readonly status: DeliveryStatus | null;
  readonly type: string | null;
  readonly response: (typeof RESPONSES)[number] | null;
  /** Both inclusive. */
  readonly since: string | null;
  readonly until: string | null;
  /** The id of an email, a chat-app message or an SMS. */
  readonly messageId: string | null;
}

/** Limits the deliveries that one statement reads. A page of rare types or responses may therefore not be full. */
const MAX_READ_DELIVERIES = 10_000;

/** Lists deliveries of an endpoint, newest first. */
export async function searchDeliveries(
  db: Db,
  endpointId: string,
  filters: DeliveryFilters,
  after: Cursor | null,
  limit: number,
): Promise<Page<FoundDelivery>> {
  const { status, type, response, since, until, messageId } = filters;
  const isByMessage = messageId !== null;
  const read = await queryRows<FoundDelivery & ReadRow>(db, {
    name: isByMessage ? 'search_deliveries_of_message' : 'search_deliveries',
    text: `WITH read AS MATERIALIZED (
             SELECT *, ($7::text IS NULL OR type = $7)
                       AND ($8::text IS NULL OR CASE $8 WHEN 'none' THEN status_code IS NULL AND tries > 0
                                                ELSE status_code / 100 = left($8, 1)::integer END) AS is_match,
                    row_number() OVER (ORDER BY created_at DESC, id DESC) = $11 AS is_last
             FROM (${isByMessage ? OF_MESSAGE : OF_ENDPOINT}) AS delivery
             ORDER BY created_at DESC, id DESC LIMIT $11
           ), page AS (
             (SELECT * FROM read WHERE is_match ORDER BY created_at DESC, id DESC LIMIT $6)
             UNION
             (SELECT * FROM read WHERE is_last)
           )
           SELECT page.id, event_id, page.type, status, page.created_at, next_attempt_at, tries, status_code,
                  event.message_id, event.data->>'recipient' AS recipient, has_email, is_match, is_last
           FROM page LEFT JOIN LATERAL (
             -- OFFSET keeps a plan made for a small table from reading all events.
             SELECT message_id, data, (SELECT id FROM emails WHERE id = message_id) IS NOT NULL AS has_email
             FROM webhook_events WHERE id = page.event_id OFFSET 0
           ) AS event ON true
           ORDER BY page.created_at DESC, page.id DESC`,
    values: [
      ...[endpointId, ...cursorValues(after), since ?? '-infinity', until ?? 'infinity', limit + 1],
      ...[
        type,
        response,
        statusesOf(status),
        messageId,
        type === null && response === null ? limit + 1 : MAX_READ_DELIVERIES,
      ],
    ],
  });
  return cutReadPage(read, limit);
}

const WITHIN = `endpoint_id = $1 AND (created_at, id) < ($2::timestamptz, $3) AND created_at BETWEEN $4 AND $5`;

const OF_ENDPOINT = deliveriesBy('$9', `${WITHIN} AND $10::text IS NULL`, 'DESC', '$11');

/**
 * The id of a delivery follows from those of its event and endpoint. OFFSET 0 prevents a plan that reads all deliveries of the
 * endpoint in their order.
 */
const OF_MESSAGE = `
  SELECT * FROM (
    SELECT * FROM webhook_deliveries
    WHERE id = ANY (ARRAY(SELECT delivery_id(id, $1) FROM email_events WHERE email_id = $10
                          UNION ALL SELECT delivery_id(id, $1) FROM chat_events WHERE message_id = $10)) OFFSET 0
  ) AS named WHERE status = ANY ($9) AND ${WITHIN}`;

/** Counts of the latest deliveries of an endpoint. */
export interface DeliveryHealth {
  endpoint_id: string;
  /** Of the deliveries of the last 24 hours, or the latest HEALTH_SAMPLE of them. */
  attempted: number;
  succeeded: number;
  /** Deliveries that wait for an attempt; HEALTH_SAMPLE + 1 means more than HEALTH_SAMPLE. */
  pending: number;
}

export const HEALTH_SAMPLE = 1_000;

const LATEST = deliveriesBy(
  '$3',
  `webhook_deliveries.endpoint_id = endpoint.endpoint_id AND created_at > now() - interval '24 hours'`,
  'DESC',
  '$2',
);

export async function readDeliveryHealth(db: Db, endpointIds: readonly string[]): Promise<Map<string, DeliveryHealth>> {
  const rows = await queryRows<DeliveryHealth>(db, {
    name: 'read_delivery_health',
    text: `SELECT endpoint_id, attempted, succeeded, pending
           FROM unnest($1::text[]) AS endpoint(endpoint_id)
                CROSS JOIN LATERAL (
                  SELECT count(*) FILTER (WHERE tries > 0)::int AS attempted,
                         count(*) FILTER (WHERE status = 'succeeded')::int AS succeeded
                  FROM (${LATEST}) AS latest
                ) AS counted
                CROSS JOIN LATERAL (
                  SELECT count(*)::int AS pending FROM (
                    SELECT FROM webhook_deliveries WHERE endpoint_id = endpoint.endpoint_id AND status = 'pending'
                    ORDER BY next_attempt_at LIMIT $2 + 1
                  ) AS waiting
                ) AS waiting`,
    values: [endpointIds, HEALTH_SAMPLE, DELIVERY_STATUSES],
  });
  return new Map(rows.map((row) => [row.endpoint_id, row]));
}
