import type { ChatContent, ChatStatus, ChatType } from '../../domain/chat/chat.ts';
import { wireTime } from '../emails/emails.ts';
import type { IdempotencyKey } from '../limits/idempotency.ts';
import { type Cursor, cursorValues } from '../postgres/page.ts';
import { type Db, queryRow, queryRows } from '../postgres/pool.ts';
import { IS_SUSPENDED } from '../accounts/suspension.ts';
import { ENQUEUE_WEBHOOKS } from '../webhooks/events.ts';

/** A valid message to store. */
export interface NewChat {
  readonly id: string;
  readonly event_id: string;
  /** E.164, or null for the one number that is connected. */
  readonly from: string | null;
  /** E.164. */
  readonly to: string;
  readonly country: string;
  readonly type: ChatType;
  readonly content: ChatContent;
  /** The span of its request, which its delivery continues. */
  readonly traceparent?: string | undefined;
}

/** Why a message was not stored: its organization is suspended, no number fits, or several do. */
export type ChatRefusal = 'suspended' | 'none' | 'several';

export type ChatAcceptance =
  | { id: string; status: 'queued'; type: ChatType; from: string; country: string; created_at: string; refusal: null }
  | { refusal: ChatRefusal };

/** Stores one message with its first event and its outbox row, in one statement. A refusal stores nothing. */
export function acceptChat(db: Db, orgId: string, chat: NewChat): Promise<ChatAcceptance | undefined> {
  return queryRow(db, {
    name: 'accept_chat',
    text: ACCEPT_CHAT,
    values: acceptValues(orgId, chat),
  });
}

/**
 * Stores one message like `acceptChat`, and the response under the request's idempotency key in the same statement.
 * @throws SQLSTATE 23505 if the key has been used meanwhile
 */
export function acceptChatWithKey(
  db: Db,
  orgId: string,
  chat: NewChat,
  idempotency: IdempotencyKey,
): Promise<ChatAcceptance | undefined> {
  return queryRow(db, {
    name: 'accept_chat_with_key',
    text: ACCEPT_CHAT_WITH_KEY,
    values: [...acceptValues(orgId, chat), idempotency.key, idempotency.fingerprint],
  });
}

function acceptValues(orgId: string, chat: NewChat): unknown[] {
  return [
    orgId,
    chat.from,
    chat.id,
    chat.event_id,
    chat.to,
    chat.country,
    chat.type,
    // The driver would write an object as the array or text that it takes it for.
    JSON.stringify(chat.content),
    chat.traceparent ?? null,
  ];
}

/** @param also further parts of the statement, each with a comma before it */
const accepting = (also = ''): string => `
  WITH organization AS MATERIALIZED (
    SELECT ${IS_SUSPENDED('$1')} AS is_suspended
  ), fitting AS MATERIALIZED (
    SELECT id, number FROM chat_numbers
    WHERE org_id = $1 AND ($2::text IS NULL OR number = $2) AND NOT (SELECT is_suspended FROM organization) LIMIT 2
  ), accepted AS MATERIALIZED (
    SELECT $3::text AS id, $4::text AS event_id, id AS number_id, number AS "from", $5::text AS "to",
           $6::text AS country, $7::text AS type, $8::json AS content
    FROM fitting WHERE (SELECT count(*) FROM fitting) = 1
  ), stored AS (
    INSERT INTO chat_messages (id, org_id, number_id, "from", "to", country, type, content, status, created_at, last_event_at)
    SELECT id, $1, number_id, "from", "to", country, type, content, 'queued', now(), now() FROM accepted
  ), recorded AS (
    INSERT INTO chat_events (message_id, id, type, created_at) SELECT id, event_id, 'chatapp.queued', now() FROM accepted
  ), enqueued AS (
    INSERT INTO outbox (message_id, action, traceparent) SELECT id, 'chat', $9::text FROM accepted
  ), happened AS MATERIALIZED (
    SELECT event_id, $1 AS org_id, 'chatapp.queued' AS type, now()::timestamptz(3) AS created_at, NULL::text AS message_id,
           jsonb_build_object('messageId', id, 'from', "from", 'to', "to", 'country', country, 'type', type,
             'status', 'queued') AS data
    FROM accepted
  )${ENQUEUE_WEBHOOKS}${also}
  SELECT accepted.id, 'queued' AS status, type, "from", country, now()::timestamptz(3) AS created_at,
         CASE WHEN (SELECT is_suspended FROM organization) THEN 'suspended'
              WHEN fits.count = 0 THEN 'none' WHEN fits.count = 2 THEN 'several' END AS refusal
  FROM (SELECT count(*) FROM fitting) AS fits LEFT JOIN accepted ON true`;

const ACCEPT_CHAT = accepting();
const ACCEPT_CHAT_WITH_KEY = accepting(`, remembered AS (
    INSERT INTO idempotency_keys (org_id, key, fingerprint, answer)
    SELECT $1, $10, $11, json_build_object('id', id, 'status', 'queued', 'type', type, 'from', "from", 'country', country,
      'created_at', ${wireTime('now()')})
    FROM accepted
  )`);

/** One message as lists show it. */
export interface ChatSummary {
  id: string;
  status: ChatStatus;
  type: ChatType;
  from: string;
  to: string;
  country: string;
  error: string | null;
  error_code: string | null;
  created_at: string;
  last_event_at: string;
}

/** One message as the API shows it. */
export type ChatMessage = ChatSummary & ChatContent & { events: { type: string; created_at: string }[] };

const SUMMARY = `id, status, type, "from", "to", country, error, error_code, created_at, last_event_at`;

/** One message with what was given and its timeline, as of one instant. */
export function findChat(db: Db, orgId: string, id: string): Promise<ChatMessage | undefined> {
  return queryRow(db, {
    name: 'find_chat',
    text: `SELECT ${SUMMARY}, content->>'text' AS text, (content->>'preview_url')::boolean AS preview_url,
                  content->'template' AS template, content->'image' AS image, content->'document' AS document,
                  (SELECT json_agg(json_build_object('type', type, 'created_at', ${wireTime('created_at')}) ORDER BY created_at, id)
                   FROM chat_events WHERE message_id = chat_messages.id) AS events
           FROM chat_messages WHERE id = $1 AND org_id = $2`,
    values: [id, orgId],
  });
}

/** What a listed message must have, all of it. */
export interface ChatFilters {
  readonly status: ChatStatus | null;
  /** E.164. */
  readonly to: string | null;
}

/** An organization's messages, newest first. */
export function listChats(
  db: Db,
  orgId: string,
  filters: ChatFilters,
  after: Cursor | null,
  limit: number,
): Promise<ChatSummary[]> {
  const { name, condition, values } = filterBy(filters);
  return queryRows(db, {
    name,
    text: `SELECT ${SUMMARY} FROM chat_messages
           WHERE org_id = $1 AND (created_at, id) < ($2::timestamptz, $3) ${condition}
           ORDER BY created_at DESC, id DESC LIMIT $4`,
    values: [orgId, ...cursorValues(after), limit, ...values],
  });
}

/** A statement for each set of filters, so that each is planned for its own index. */
function filterBy({ status, to }: ChatFilters): { name: string; condition: string; values: unknown[] } {
  if (status !== null && to !== null) {
    return { name: 'list_chats_to_by_status', condition: 'AND "to" = $5 AND status = $6', values: [to, status] };
  }
  if (to !== null) return { name: 'list_chats_to', condition: 'AND "to" = $5', values: [to] };
  if (status !== null) return { name: 'list_chats_by_status', condition: 'AND status = $5', values: [status] };
  return { name: 'list_chats', condition: '', values: [] };
}
