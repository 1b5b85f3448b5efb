import type { Db } from '../postgres/pool.ts';

/** Messages that Twilio accepted and whose final status is overdue, the longest overdue first. */
export async function findUnreportedChats(db: Db, limit: number): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>({
    name: 'find_unreported_chats',
    text: `SELECT id FROM chat_messages
           WHERE look_at <= now() AND status = 'sent' AND provider_message_id IS NOT NULL ORDER BY look_at LIMIT $1`,
    values: [limit],
  });
  return rows.map(({ id }) => id);
}

/** Overdue messages without an outbox row. */
export async function findOverdueChats(db: Db, limit: number): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>({
    name: 'find_overdue_chats',
    text: `SELECT id FROM chat_messages
           WHERE look_at <= now() AND status = 'queued' AND id NOT IN (SELECT message_id FROM outbox)
           ORDER BY look_at LIMIT $1`,
    values: [limit],
  });
  return rows.map(({ id }) => id);
}

/**
 * Schedules the next check of messages, at twice the time for which they have been stuck: at most an hour later, or a day for
 * messages that a provider accepted. These are not checked after three days.
 */
export async function scheduleNextChatCheck(db: Db, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await db.query({
    name: 'schedule_next_chat_check',
    text: `UPDATE chat_messages AS message
           SET look_at = CASE WHEN stuck.taken AND now() + stuck.since > message.last_event_at + interval '72 hours'
                              THEN NULL ELSE now() + least(stuck.since, stuck.most) END
           FROM (
             SELECT id, status <> 'queued' AS taken,
                    CASE WHEN status = 'queued' THEN interval '1 hour' ELSE interval '24 hours' END AS most,
                    now() - CASE WHEN status = 'queued' THEN created_at ELSE last_event_at END AS since
             FROM chat_messages WHERE id = ANY ($1) AND look_at IS NOT NULL
           ) AS stuck
           WHERE message.id = stuck.id`,
    values: [ids],
  });
}

/** Starts new workflows for messages that are still queued. @returns their ids */
export async function putBackChats(db: Db, ids: readonly string[]): Promise<string[]> {
  const { rows } = await db.query<{ message_id: string }>({
    name: 'put_back_chats',
    text: `WITH queued AS MATERIALIZED (
             SELECT id FROM chat_messages WHERE id = ANY ($1) AND status = 'queued' ORDER BY id FOR UPDATE
           )
           INSERT INTO outbox (message_id, action) SELECT id, 'chat_again' FROM queued RETURNING message_id`,
    values: [ids],
  });
  return rows.map(({ message_id }) => message_id);
}
