import { type Db, queryOneValue } from '../postgres/pool.ts';
import { IS_OPEN_MESSAGE } from './content-erasure.ts';

/**
 * Deletes the oldest chat-app messages and SMS that have ended, with their timelines, attempts and tags.
 * @param before messages from before this time are deleted, as the time in an id (`idTime`)
 * @returns the number of deleted messages
 */
export function deleteOldMessages(db: Db, before: string, limit: number): Promise<number> {
  const oldest = (prefix: string) => `
    (SELECT id FROM chat_messages WHERE id >= '${prefix}_' AND id < '${prefix}_' || $1 AND NOT (${IS_OPEN_MESSAGE})
     ORDER BY id LIMIT $2)`;
  return queryOneValue(
    db,
    `WITH expired AS MATERIALIZED (${oldest('wa')} UNION ALL ${oldest('sms')}),
     deleted AS (
       DELETE FROM chat_messages WHERE id = ANY (ARRAY (SELECT id FROM expired)) AND NOT (${IS_OPEN_MESSAGE})
       RETURNING id, org_id, channel, created_at, tags
     ), events AS (
       DELETE FROM chat_events WHERE message_id = ANY (ARRAY (SELECT id FROM deleted))
     ), tried AS (
       DELETE FROM attempts WHERE message_id = ANY (ARRAY (SELECT id FROM deleted))
     ), tagged AS (
       DELETE FROM message_tags AS tag USING (
         SELECT org_id, channel, created_at, id, name, value
         FROM deleted CROSS JOIN jsonb_to_recordset(tags) AS tag(name text, value text)
       ) AS old
       WHERE tag.org_id = old.org_id AND tag.channel = old.channel AND tag.name = old.name AND tag.value = old.value
         AND tag.created_at = old.created_at AND tag.message_id = old.id
     )
     SELECT count(*)::int FROM deleted`,
    [before, limit],
  );
}
