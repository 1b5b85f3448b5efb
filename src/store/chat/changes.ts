import type { ChatProviderName, ChatStatus } from '../../domain/chat/chat.ts';
import type { ChatTransition } from '../../domain/chat/states.ts';
import { type Db, queryRows } from '../postgres/pool.ts';
import { ENQUEUE_WEBHOOKS } from '../webhooks/events.ts';
import { columns } from '../postgres/columns.ts';

/** One message in a change that the projection makes. */
export interface ChangedChat {
  id: string;
  event_id: string;
  /** A message whose timeline has this key already stays untouched. */
  dedupe_key: string;
  error?: string;
  /** The provider's own code. */
  error_code?: string;
  provider?: ChatProviderName;
  provider_message_id?: string;
}

/**
 * Applies one transition to messages, adds it to their timelines and enqueues webhooks.
 * @returns the messages that were changed or got an event, with their new status
 */
export async function changeChats(
  db: Db,
  transition: ChatTransition,
  messages: readonly ChangedChat[],
): Promise<{ id: string; status: ChatStatus }[]> {
  if (messages.length === 0) return [];
  return queryRows(db, {
    name: 'change_chats',
    text: CHANGE_CHATS,
    values: [
      transition.to,
      transition.from,
      transition.noted,
      transition.event,
      ...columns(messages, 'id', 'event_id', 'dedupe_key', 'error', 'error_code', 'provider', 'provider_message_id'),
    ],
  });
}

/**
 * Rows are locked in the order of their ids, each looked up alone. The timeline is written before the message, because only
 * its unique index detects an event that is recorded already. The provider's first id of a message stays. Upkeep queries
 * messages that Twilio accepted: Meta cannot be queried.
 */
const CHANGE_CHATS = `
  WITH found AS MATERIALIZED (
    SELECT message.*, message.status = ANY ($2::text[]) AS moves, input.*
    FROM (
      SELECT * FROM unnest($5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[])
        AS input(message_id, event_id, dedupe_key, error, error_code, provider, provider_message_id)
      ORDER BY message_id COLLATE "C"
    ) AS input CROSS JOIN LATERAL (
      SELECT id, org_id, "from", "to", country, type AS kind, status, last_event_at
      FROM chat_messages WHERE id = input.message_id FOR UPDATE
    ) AS message
    WHERE message.status = ANY ($2::text[] || $3::text[])
  ), recorded AS (
    INSERT INTO chat_events (message_id, id, type, created_at, dedupe_key)
    SELECT id, event_id, $4, greatest(last_event_at, clock_timestamp()), dedupe_key FROM found
    ON CONFLICT (message_id, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING
    RETURNING id AS event_id, created_at
  ), changed AS MATERIALIZED (
    SELECT found.*, recorded.created_at, CASE WHEN moves THEN $1 ELSE status END AS next_status
    FROM found JOIN recorded USING (event_id)
  ), happened AS MATERIALIZED (
    SELECT event_id, org_id, $4::text AS type, created_at, NULL::text AS message_id,
           jsonb_strip_nulls(jsonb_build_object(
             'messageId', id, 'from', "from", 'to', "to", 'country', country, 'type', kind, 'status', next_status,
             'error', error, 'errorCode', error_code
           )) AS data
    FROM changed
  )${ENQUEUE_WEBHOOKS}, moved AS (
    UPDATE chat_messages AS message SET
      status              = first.next_status,
      error               = CASE WHEN first.moves THEN first.error ELSE message.error END,
      error_code          = CASE WHEN first.moves THEN first.error_code ELSE message.error_code END,
      provider            = coalesce(message.provider, first.provider),
      provider_message_id = coalesce(message.provider_message_id, first.provider_message_id),
      last_event_at       = first.latest_at,
      look_at             = CASE WHEN NOT first.moves THEN message.look_at
                                 WHEN $1 = 'sent' AND first.provider = 'twilio' THEN now() + interval '2 minutes' END
    FROM (
      SELECT DISTINCT ON (id) *, max(created_at) OVER (PARTITION BY id) AS latest_at FROM changed ORDER BY id, created_at
    ) AS first
    WHERE message.id = first.id
  )
  SELECT id, next_status AS status FROM changed`;
