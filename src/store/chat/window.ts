import { whatsAppForms } from '../../domain/chat/phone.ts';
import { type Window, WINDOW_HOURS } from '../../domain/chat/window.ts';
import { type Db, execute, queryColumn, queryOneRow } from '../postgres/pool.ts';

/** Reads the customer-service window of a message's recipient, as of the start of the caller's transaction. */
export async function readWindow(
  db: Db,
  { org_id, from, to }: { readonly org_id: string; readonly from: string; readonly to: string },
): Promise<Window> {
  return queryOneRow(db, {
    name: 'read_window',
    text: `SELECT coalesce(last > now() - interval '${WINDOW_HOURS} hours', false) AS is_open,
                  last IS NOT NULL OR EXISTS (
                    SELECT FROM chat_numbers
                    WHERE number = $2 AND org_id = $1 AND receives_since <= now() - interval '${WINDOW_HOURS} hours'
                  ) AS is_known
           FROM (
             SELECT max(last_inbound_at) AS last FROM chat_contacts
             WHERE org_id = $1 AND number = $2 AND (wa_number = ANY ($4) OR user_id = $3 OR former_user_id = $3)
           ) AS contact`,
    values: [org_id, from, to, whatsAppForms(to)],
  });
}

/** Makes a locked message go out as its fallback template from now on. */
export async function useFallback(db: Db, id: string): Promise<void> {
  await execute(db, {
    name: 'use_fallback',
    text: `UPDATE chat_messages SET fallback_at = now() WHERE id = $1 AND fallback_at IS NULL`,
    values: [id],
  });
}

/**
 * Requeues locked messages that a provider accepted and did not deliver, as their fallback templates. The provider's answer may
 * be recorded without being applied yet: such a message is still queued. Their attempts are no longer final, so that the next
 * claim makes another, and keep the ids by which late reports are recognized. The timeline gets a second `sent` if it has one.
 * OFFSET 0 and ARRAY prevent plans that read all attempts.
 * @returns the messages that had an unused fallback; a call that is still under way prevents its use
 */
export async function requeueAsFallback(db: Db, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  return queryColumn(db, {
    name: 'requeue_as_fallback',
    text: `WITH requeued AS (
             UPDATE chat_messages AS message
             SET status = 'queued', fallback_at = now(), provider_message_id = NULL, workflow_id = NULL,
                 look_at = now() + interval '10 minutes'
             WHERE id = ANY ($1) AND fallback_at IS NULL AND coalesce(has_fallback, content->'fallback_template' IS NOT NULL)
               AND (status = 'sent'
                    OR status = 'queued' AND EXISTS (
                      SELECT FROM attempts WHERE message_id = message.id AND outcome = 'sent' OFFSET 0))
               AND NOT EXISTS (
                 SELECT FROM attempts WHERE message_id = message.id AND (outcome IS NULL OR outcome = 'unknown') OFFSET 0)
             RETURNING id
           ), attempted AS (
             UPDATE attempts SET outcome = 'again'
             WHERE message_id = ANY (ARRAY (SELECT id FROM requeued)) AND outcome = 'sent'
           ), released AS (
             UPDATE chat_events SET dedupe_key = 'sent before its fallback'
             WHERE message_id = ANY (ARRAY (SELECT id FROM requeued)) AND dedupe_key = 'sent'
           )
           INSERT INTO outbox (message_id, action) SELECT id, 'message_again' FROM requeued RETURNING message_id AS id`,
    values: [ids],
  });
}
