import { newId } from '../../lib/ids.ts';
import { type Db, execute, queryRows } from '../postgres/pool.ts';
import { columns } from '../postgres/columns.ts';

/** An event with the data of its payload. */
export interface NewWebhookEvent {
  /** The id of its entry in a timeline; a new one if it has none. */
  readonly event_id?: string;
  readonly org_id: string;
  readonly type: string;
  /** The time of its entry in a timeline; now if it has none. */
  readonly created_at?: string;
  /** The email that it concerns; its payload contains fields of the email. */
  readonly message_id?: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** An enabled endpoint; one without `events` subscribes to all. */
interface SubscribedEndpoint {
  readonly id: string;
  readonly org_id: string;
  readonly events: readonly string[];
}

/** The enabled endpoints of organizations. */
async function findEndpoints(db: Db, orgIds: readonly string[]): Promise<SubscribedEndpoint[]> {
  if (orgIds.length === 0) return [];
  return queryRows(db, {
    name: 'find_enabled_endpoints',
    text: `SELECT id, org_id, events FROM webhook_endpoints WHERE org_id = ANY ($1) AND status = 'enabled'`,
    values: [orgIds],
  });
}

/** The enabled endpoints of the organizations that emails belong to. */
export async function findEndpointsOf(db: Db, emailIds: readonly string[]): Promise<SubscribedEndpoint[]> {
  return queryRows(db, {
    name: 'find_enabled_endpoints_of_emails',
    text: `SELECT id, org_id, events FROM webhook_endpoints
           WHERE org_id = ANY (ARRAY(SELECT DISTINCT org_id FROM emails WHERE id = ANY ($1))) AND status = 'enabled'`,
    values: [emailIds],
  });
}

/** Enqueues events for every endpoint that subscribes to them, in the transaction of the change. */
export async function enqueueEvents(db: Db, events: readonly NewWebhookEvent[]): Promise<void> {
  const endpoints = await findEndpoints(db, [...new Set(events.map(({ org_id }) => org_id))]);
  await enqueueFor(db, endpoints, events);
}

/**
 * Enqueues events for endpoints that were looked up in the same transaction. They are not locked: deliveries of one that is
 * deleted meanwhile are never posted.
 */
export async function enqueueFor(
  db: Db,
  endpoints: readonly SubscribedEndpoint[],
  newEvents: readonly NewWebhookEvent[],
): Promise<void> {
  if (endpoints.length === 0) return;
  const events = newEvents.map((event) => Object.assign({}, event, { event_id: event.event_id ?? newId('evt') }));
  const deliveries = events.flatMap(({ event_id, org_id, type, created_at }) =>
    endpoints
      .filter(
        (endpoint) => endpoint.org_id === org_id && (endpoint.events.length === 0 || endpoint.events.includes(type)),
      )
      .map(({ id: endpoint_id }) => ({ endpoint_id, event_id, type, created_at })),
  );
  const subscribed = new Set(deliveries.map(({ event_id }) => event_id));
  await Promise.all([
    insertEvents(
      db,
      events.filter(({ event_id }) => subscribed.has(event_id)),
    ),
    insertDeliveries(db, deliveries),
  ]);
}

type IdentifiedEvent = NewWebhookEvent & { readonly event_id: string };

/** SQL of the current time, truncated to milliseconds: a rounded time may be in the future, and a delivery is due immediately. */
const NOW = `date_trunc('milliseconds', now())`;

async function insertEvents(db: Db, events: readonly IdentifiedEvent[]): Promise<void> {
  if (events.length === 0) return;
  await execute(db, {
    name: 'insert_webhook_events',
    text: `INSERT INTO webhook_events (id, org_id, type, created_at, message_id, data)
           SELECT id, org_id, type, coalesce(created_at, ${NOW}), message_id, data
           FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::jsonb[])
             AS event(id, org_id, type, created_at, message_id, data)`,
    values: columns(events, 'event_id', 'org_id', 'type', 'created_at', 'message_id', 'data'),
  });
}

type NewDelivery = Pick<IdentifiedEvent, 'event_id' | 'type'> & {
  readonly endpoint_id: string;
  readonly created_at: string | undefined;
};

async function insertDeliveries(db: Db, deliveries: readonly NewDelivery[]): Promise<void> {
  if (deliveries.length === 0) return;
  await execute(db, {
    name: 'insert_webhook_deliveries',
    text: `INSERT INTO webhook_deliveries (id, endpoint_id, event_id, type, created_at, next_attempt_at)
           SELECT delivery_id(event_id, endpoint_id), endpoint_id, event_id, type, at, at
           FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[])
                  AS delivery(endpoint_id, event_id, type, created_at)
                CROSS JOIN LATERAL (SELECT coalesce(created_at, ${NOW}) AS at) AS time`,
    values: columns(deliveries, 'endpoint_id', 'event_id', 'type', 'created_at'),
  });
}
