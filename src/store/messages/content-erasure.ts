import type { MessageChannel } from '../../domain/messages/message.ts';
import type { ContentErasure, ExpiringEmail, ExpiringOrganization } from '../emails/content-erasure.ts';
import { type Db, execute, queryRows } from '../postgres/pool.ts';

/** The condition that a message is still to be sent. */
export const IS_OPEN_MESSAGE = `status IN ('queued', 'scheduled')`;

/**
 * Erases the content of chat-app messages and SMS that have ended, also of such as were never encrypted. Locks the rows of the
 * messages, so call it in a transaction. Idempotent.
 * @param channel restricts it to messages of this channel
 * @returns a result for each message that the organization has
 */
export async function eraseMessageContents(
  db: Db,
  orgId: string,
  ids: readonly string[],
  channel: MessageChannel | null = null,
): Promise<ContentErasure[]> {
  if (ids.length === 0) return [];
  const rows = await queryRows<ContentErasure>(db, {
    name: 'lock_message_contents',
    text: `SELECT id, ${IS_OPEN_MESSAGE} AS is_open FROM chat_messages
           WHERE id = ANY ($1) AND org_id = $2 AND ($3::text IS NULL OR channel = $3) ORDER BY id FOR UPDATE`,
    values: [ids, orgId, channel],
  });
  const ended = rows.filter(({ is_open: isOpen }) => !isOpen).map(({ id }) => id);
  if (ended.length > 0) {
    // Without its fallback template, a message that was accepted is not sent again if a report calls it undelivered.
    await execute(
      db,
      `UPDATE chat_messages SET content = 'null', sealed_content = NULL, has_fallback = false
       WHERE id = ANY ($1) AND (sealed_content IS NOT NULL OR content::text <> 'null')`,
      [ended],
    );
  }
  return rows;
}

/** Lists messages of an organization whose retention may have ended, oldest first, after the position of upkeep. */
export function listExpiringMessages(
  db: Db,
  { id, days, messages_expired_at, messages_expired_id }: ExpiringOrganization,
  limit: number,
): Promise<ExpiringEmail[]> {
  return queryRows(db, {
    name: 'list_expiring_messages',
    text: `SELECT id, created_at::text AS created_at,
                  coalesce(scheduled_at, created_at) < now() - make_interval(days => $4) AS is_expired
           FROM chat_messages WHERE org_id = $1 AND (created_at, id) > ($2::timestamptz, $3)
             AND created_at < now() - make_interval(days => $4)
           ORDER BY chat_messages.created_at, id LIMIT $5`,
    values: [id, messages_expired_at, messages_expired_id, days, limit],
  });
}

/** Stores the position of upkeep in the messages of an organization. */
export async function recordExpiredMessages(
  db: Db,
  orgId: string,
  last: Pick<ExpiringEmail, 'id' | 'created_at'>,
): Promise<void> {
  await execute(db, `UPDATE organizations SET messages_expired_at = $2, messages_expired_id = $3 WHERE id = $1`, [
    orgId,
    last.created_at,
    last.id,
  ]);
}
