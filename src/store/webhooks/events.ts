import type { Db } from '../postgres/pool.ts';
import { columns } from '../postgres/columns.ts';

/**
 * Parts of a statement that enqueue an event for every endpoint that subscribes to it, in the transaction of the change.
 * They need the part `happened(event_id, org_id, type, created_at, message_id, data)` and begin with a comma.
 * Endpoints are not locked: deliveries of one that is deleted meanwhile are never posted.
 */
export const ENQUEUE_WEBHOOKS = `
  , listening AS MATERIALIZED (
    SELECT id, org_id, events FROM webhook_endpoints
    WHERE org_id IN (SELECT org_id FROM happened) AND status = 'enabled'
  ), heard AS MATERIALIZED (
    SELECT happened.*, listening.id AS endpoint_id
    FROM listening JOIN happened USING (org_id)
    WHERE listening.events = '{}' OR happened.type = ANY (listening.events)
  ), kept AS (
    INSERT INTO webhook_events (id, org_id, type, created_at, message_id, data)
    SELECT DISTINCT ON (event_id) event_id, org_id, type, created_at, message_id, data FROM heard ORDER BY event_id
  ), delivered AS (
    INSERT INTO webhook_deliveries (id, endpoint_id, event_id, type, created_at, next_attempt_at)
    SELECT delivery_id(event_id, endpoint_id), endpoint_id, event_id, type, created_at, created_at FROM heard
  )`;

/** Something that happened besides the events of messages, with what its payload's data holds. */
export interface Happening {
  readonly event_id: string;
  readonly org_id: string;
  readonly type: string;
  /** The time of its entry in a timeline; now if it has none. */
  readonly created_at?: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Enqueues events for every endpoint that subscribes to them. */
export async function tellEndpoints(db: Db, happenings: readonly Happening[]): Promise<void> {
  if (happenings.length === 0) return;
  await db.query({
    name: 'tell_endpoints',
    text: `WITH happened AS MATERIALIZED (
             SELECT event_id, org_id, type, coalesce(created_at, date_trunc('milliseconds', now())) AS created_at,
                    NULL::text AS message_id, data
             FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::jsonb[])
               AS input(event_id, org_id, type, created_at, data)
           )${ENQUEUE_WEBHOOKS}
           SELECT`,
    values: columns(happenings, 'event_id', 'org_id', 'type', 'created_at', 'data'),
  });
}
