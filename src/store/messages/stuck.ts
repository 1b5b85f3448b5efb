import type { MessageChannel } from '../../domain/messages/message.ts';
import { SUSPENDED_ORGANIZATIONS } from '../accounts/suspension.ts';
import { SCHEDULE_CHECK } from '../emails/stuck.ts';
import { type Db, execute, queryColumn, queryRows } from '../postgres/pool.ts';
import {
  FORGOTTEN,
  insertAmbiguousAttempts,
  MESSAGE_MAY_HAVE_FORGOTTEN,
  POSSIBLE_SEND_FROM,
} from '../upkeep/forgotten.ts';
import { SENDERS } from './delivery.ts';

/** Messages that Twilio accepted and whose final status is overdue, the longest overdue first. */
export function findUnreported(db: Db, limit: number): Promise<string[]> {
  return queryColumn(db, {
    name: 'find_unreported_messages',
    text: `SELECT id FROM chat_messages
           WHERE look_at <= now() AND status = 'sent' AND provider_message_id IS NOT NULL ORDER BY look_at LIMIT $1`,
    values: [limit],
  });
}

export interface OverdueMessage {
  id: string;
  channel: MessageChannel;
  workflow_id: string;
}

/** Overdue messages without an outbox row. Those of suspended organizations wait on purpose: they are left out. */
export function findOverdueMessages(db: Db, limit: number): Promise<OverdueMessage[]> {
  return queryRows(db, {
    name: 'find_overdue_messages',
    text: `SELECT id, channel, coalesce(workflow_id, id) AS workflow_id FROM chat_messages
           WHERE look_at <= now() AND status IN ('queued', 'scheduled') AND id NOT IN (SELECT message_id FROM outbox)
             AND (workflow_id IS NULL OR workflow_id NOT IN (SELECT message_id FROM outbox))
             AND (scheduled_at IS NULL OR scheduled_at <= now() - interval '10 minutes')
             AND org_id <> ALL (${SUSPENDED_ORGANIZATIONS})
           ORDER BY look_at LIMIT $1`,
    values: [limit],
  });
}

/** Keeps upkeep from treating messages as overdue until ten minutes after they have waited for `waitMs`. */
export async function postponeMessageChecks(db: Db, ids: readonly string[], waitMs: number): Promise<void> {
  if (ids.length === 0) return;
  await execute(
    db,
    `UPDATE chat_messages SET look_at = now() + make_interval(secs => $2::float8 / 1000) + interval '10 minutes'
     WHERE id = ANY ($1) AND status IN ('queued', 'scheduled')`,
    [ids, waitMs],
  );
}

const IS_ACCEPTED = `status NOT IN ('queued', 'scheduled')`;

/** Schedules the next check of messages that have one: see `SCHEDULE_CHECK`. */
export async function scheduleNextMessageCheck(db: Db, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await execute(db, {
    name: 'schedule_next_message_check',
    text: SCHEDULE_CHECK('chat_messages', 'id = ANY ($1) AND look_at IS NOT NULL', IS_ACCEPTED, 'NULL'),
    values: [ids],
  });
}

/**
 * Starts new workflows for messages that are still to be sent.
 * @param isClosed true if their workflows have closed, which is evidence that Postgres forgot how the messages ended: see `requeueEmails`
 * @returns their ids
 */
export function requeueMessages(db: Db, ids: readonly string[], isClosed: boolean): Promise<string[]> {
  return queryColumn(db, {
    name: 'put_back_messages',
    text: `WITH found AS MATERIALIZED (
             SELECT id, created_at, number_id, $2 AND ${MESSAGE_MAY_HAVE_FORGOTTEN('chat_messages')} AS may_have_forgotten
             FROM chat_messages WHERE id = ANY ($1) AND status IN ('queued', 'scheduled') ORDER BY id FOR UPDATE
           ), open AS (
             SELECT found.id, found.created_at, found.may_have_forgotten, number.provider
             FROM found LEFT JOIN ${SENDERS} AS number ON number.id = found.number_id
           ), ambiguous AS (
             ${insertAmbiguousAttempts('provider', POSSIBLE_SEND_FROM, '$3', 'may_have_forgotten AND provider IS NOT NULL')}
           ), moved AS (
             UPDATE chat_messages SET workflow_id = NULL WHERE id = ANY (ARRAY(SELECT id FROM found)) AND workflow_id IS NOT NULL
           )
           INSERT INTO outbox (message_id, action) SELECT id, 'message_again' FROM found RETURNING message_id`,
    values: [ids, isClosed, FORGOTTEN],
  });
}
