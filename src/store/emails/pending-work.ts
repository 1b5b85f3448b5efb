import { MESSAGE_ACTIONS } from '../outbox/outbox.ts';
import { type Db, queryRows } from '../postgres/pool.ts';
import { SUSPENDED_ORGANIZATIONS } from '../accounts/suspension.ts';

const MAX_COUNT = 10_000;
/** Limits the emails of one organization among which the oldest is searched: the index has them by acceptance, not by due time. */
const MAX_SAMPLE = 100;

/** The backlog of a fleet of workers, of all organizations. */
export interface PendingWork {
  fleet: string;
  /** MAX_COUNT + 1 means more than MAX_COUNT. */
  count: number;
  /** The time for which the oldest has waited; 0 when there is none. */
  oldest_seconds: number;
}

/**
 * Outbox rows that can be dispatched now, by fleet. The age of a row that Temporal refused counts from its creation, that of
 * a deferred row from the end of its delay.
 */
export function readOutbox(db: Db): Promise<PendingWork[]> {
  return queryRows(db, {
    name: 'read_outbox',
    text: `SELECT fleet, count(since)::int AS count,
                  coalesce(greatest(extract(epoch FROM now() - min(since)), 0), 0)::float8 AS oldest_seconds
           FROM (VALUES ('email'), ('chat'), ('upkeep')) AS fleets(fleet) LEFT JOIN (
             (SELECT CASE coalesce(group_of ->> 'channel', 'email') WHEN 'email' THEN 'email' ELSE 'chat' END AS fleet,
                     ${SINCE} AS since FROM outbox
              WHERE action IN ('start', 'leave', 'reschedule', 'cancel', 'group') AND ${READY} ORDER BY id LIMIT $1)
             UNION ALL
             (SELECT 'chat', ${SINCE} FROM outbox WHERE action IN ${MESSAGE_ACTIONS} AND ${READY} ORDER BY id LIMIT $1)
             UNION ALL
             (SELECT 'upkeep', ${SINCE} FROM outbox WHERE action = 'chore' AND ${READY} ORDER BY id LIMIT $1)
           ) AS rows USING (fleet) GROUP BY fleet`,
    values: [MAX_COUNT + 1],
  });
}

const SINCE = `CASE WHEN tries > 0 THEN created_at ELSE coalesce(retry_at, created_at) END`;
const READY = `(tries > 0 OR retry_at IS NULL OR retry_at <= now())`;

/**
 * Due messages that no provider has accepted, also between two attempts, and due webhook deliveries and domain checks. Reads a
 * bounded part of indexes. Messages of suspended organizations are not late and not counted.
 */
export function readDue(db: Db): Promise<PendingWork[]> {
  return queryRows(db, {
    name: 'read_due',
    text: `WITH late AS MATERIALIZED (
             SELECT scheduled_at AS since FROM emails
             WHERE status = 'scheduled' AND scheduled_at <= now() AND org_id <> ALL (${SUSPENDED_ORGANIZATIONS}) ORDER BY scheduled_at LIMIT $1
           ), queued AS MATERIALIZED (
             SELECT FROM organizations AS org CROSS JOIN LATERAL (
               SELECT FROM emails WHERE org_id = org.id AND status = 'queued' LIMIT $1
             ) AS email WHERE org.suspended_at IS NULL LIMIT $1
           ), oldest AS MATERIALIZED (
             SELECT min(since) AS since FROM organizations AS org CROSS JOIN LATERAL (
               SELECT coalesce(scheduled_at, created_at) AS since FROM emails
               WHERE org_id = org.id AND status = 'queued' ORDER BY created_at, id LIMIT $2
             ) AS email WHERE org.suspended_at IS NULL
           ), late_chats AS MATERIALIZED (
             SELECT scheduled_at AS since FROM chat_messages
             WHERE status = 'scheduled' AND scheduled_at <= now() AND org_id <> ALL (${SUSPENDED_ORGANIZATIONS}) ORDER BY scheduled_at LIMIT $1
           ), chats AS MATERIALIZED (
             SELECT FROM organizations AS org CROSS JOIN LATERAL (
               SELECT FROM chat_messages WHERE org_id = org.id AND status = 'queued' LIMIT $1
             ) AS message WHERE org.suspended_at IS NULL LIMIT $1
           ), oldest_chat AS MATERIALIZED (
             SELECT min(since) AS since FROM organizations AS org CROSS JOIN LATERAL (
               SELECT coalesce(scheduled_at, created_at) AS since FROM chat_messages WHERE org_id = org.id AND status = 'queued'
               ORDER BY created_at, id LIMIT 1
             ) AS message WHERE org.suspended_at IS NULL
           ), deliveries AS MATERIALIZED (
             SELECT FROM webhook_endpoints AS endpoint CROSS JOIN LATERAL (
               SELECT FROM webhook_deliveries
               WHERE endpoint_id = endpoint.id AND status = 'pending' AND next_attempt_at <= now() LIMIT $1
             ) AS delivery WHERE endpoint.status = 'enabled' LIMIT $1
           ), oldest_delivery AS MATERIALIZED (
             SELECT min(since) AS since FROM webhook_endpoints AS endpoint CROSS JOIN LATERAL (
               SELECT next_attempt_at AS since FROM webhook_deliveries
               WHERE endpoint_id = endpoint.id AND status = 'pending' AND next_attempt_at <= now()
               ORDER BY next_attempt_at LIMIT 1
             ) AS delivery WHERE endpoint.status = 'enabled'
           )
           SELECT fleet, least(count, $1)::int AS count,
                  coalesce(greatest(extract(epoch FROM now() - since), 0), 0)::float8 AS oldest_seconds
           FROM (
             SELECT 'email' AS fleet, (SELECT count(*) FROM queued) + (SELECT count(*) FROM late) AS count,
                    least((SELECT since FROM oldest), (SELECT min(since) FROM late)) AS since
             UNION ALL
             SELECT 'chat', (SELECT count(*) FROM chats) + (SELECT count(*) FROM late_chats),
                    least((SELECT since FROM oldest_chat), (SELECT min(since) FROM late_chats))
             UNION ALL SELECT 'webhooks', (SELECT count(*) FROM deliveries), (SELECT since FROM oldest_delivery)
             UNION ALL SELECT 'upkeep', count(*), min(next_check_at) FROM (
               SELECT next_check_at FROM domains WHERE next_check_at <= now() ORDER BY next_check_at LIMIT $1
             ) AS domain
           ) AS counted`,
    values: [MAX_COUNT + 1, MAX_SAMPLE],
  });
}
