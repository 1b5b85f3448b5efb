import type { ChatContent, ChatType } from '../../domain/chat/chat.ts';
import type { Tag } from '../../domain/email/email.ts';
import type { MessageChannel, MessageStatus } from '../../domain/messages/message.ts';
import type { EmailContents, StoredMessageContent } from '../emails/contents.ts';
import { wireTime } from '../emails/emails.ts';
import { type Cursor, cursorValues, cutReadPage, type Page, type ReadRow } from '../postgres/page.ts';
import { type Db, queryRow, queryRows } from '../postgres/pool.ts';

/** One message as lists show it; fields of one channel are null in the other. */
export interface MessageSummary {
  id: string;
  status: MessageStatus;
  type: ChatType;
  from: string;
  to: string;
  country: string;
  segments: number | null;
  encoding: 'gsm7' | 'ucs2' | null;
  tags: Tag[];
  error: string | null;
  error_code: string | null;
  created_at: string;
  scheduled_at: string | null;
  last_event_at: string;
}

/** One message as the API shows it. */
export type Message = MessageSummary &
  ChatContent & {
    /** The time since which a chat-app message is sent as its fallback template; null if it is sent as requested. */
    fallback_at: string | null;
    events: { type: string; created_at: string }[];
  };

const SUMMARY = `message.id, message.status, message.type, message."from", message."to", message.country, message.segments,
  message.encoding, message.tags, message.error, message.error_code, message.created_at, message.scheduled_at,
  message.last_event_at`;

/** One message with its content and its timeline, as of one instant. Erased content is null. */
export async function findMessage(
  db: Db,
  contents: EmailContents,
  orgId: string,
  channel: MessageChannel,
  id: string,
): Promise<Message | undefined> {
  const row = await queryRow<Omit<Message, keyof ChatContent> & StoredMessageContent>(db, {
    name: 'find_message',
    text: `SELECT ${SUMMARY}, message.org_id, content, sealed_content, fallback_at,
                  (SELECT json_agg(json_build_object('type', type, 'created_at', ${wireTime('created_at')}) ORDER BY created_at, id)
                   FROM chat_events WHERE message_id = message.id) AS events
           FROM chat_messages AS message WHERE id = $1 AND org_id = $2 AND channel = $3`,
    values: [id, orgId, channel],
  });
  if (!row) return undefined;
  const { org_id, content, sealed_content, fallback_at, events, ...summary } = row;
  const opened = await contents.openMessage(db, { id, org_id, content, sealed_content });
  return { ...summary, ...toFields(opened), fallback_at, events };
}

/** Returns all fields of a content, also those that its message did not have. */
function toFields({ text, preview_url, template, image, document, fallback_template }: ChatContent): ChatContent {
  return { text, preview_url, template, image, document, ...(fallback_template && { fallback_template }) };
}

/** The conditions of a list; a message must meet all of them. */
export interface MessageFilters {
  readonly status: MessageStatus | null;
  /** As stored: E.164. */
  readonly to: string | null;
  /** A message must have all of them. */
  readonly tags: readonly Tag[];
  /** Inclusive. */
  readonly created_after: string | null;
  /** Exclusive. */
  readonly created_before: string | null;
}

/** Limits the entries of a tag that one statement reads. A page of a tag and a rare filter may therefore not be full. */
const MAX_TAGGED_ENTRIES = 10_000;

/** A page of an organization's messages of one channel, newest first. */
export async function listMessages(
  db: Db,
  orgId: string,
  channel: MessageChannel,
  filters: MessageFilters,
  after: Cursor | null,
  limit: number,
): Promise<Page<MessageSummary>> {
  const { name, text, values } = filters.tags.length === 0 ? listBy(filters) : listByTags(filters);
  const read = await queryRows<MessageSummary & ReadRow>(db, {
    name,
    text,
    values: [
      orgId,
      channel,
      ...cursorValues(after),
      filters.created_after ?? '-infinity',
      filters.created_before ?? 'infinity',
      limit + 1,
      ...values,
    ],
  });
  return cutReadPage(read, limit);
}

interface ListStatement {
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

/** SQL of the page and the times, which all statements share. */
const within = (row: string, id: string): string =>
  `${row}.org_id = $1 AND ${row}.channel = $2 AND (${row}.created_at, ${row}.${id}) < ($3::timestamptz, $4)
   AND ${row}.created_at >= $5 AND ${row}.created_at < $6`;

/** A statement for each set of filters, so that each is planned for its own index. */
function listBy({ status, to }: MessageFilters): ListStatement {
  const filters = Object.entries({ to, status }).filter(([, value]) => value !== null);
  const conditions = filters.map(([field], index) => `AND message."${field}" = $${index + 8}`).join(' ');
  return {
    name: ['list_messages', ...filters.map(([field]) => field)].join('_by_'),
    text: `SELECT ${SUMMARY} FROM chat_messages AS message WHERE ${within('message', 'id')} ${conditions}
           ORDER BY message.created_at DESC, message.id DESC LIMIT $7`,
    values: filters.map(([, value]) => value),
  };
}

/** Reads the entries of the first tag, and looks up the others for each of them. */
function listByTags({ status, to, tags: [first, ...others] }: MessageFilters): ListStatement {
  return {
    name: 'list_messages_by_tags',
    text: `WITH entry AS MATERIALIZED (
             SELECT message_id, created_at, row_number() OVER (ORDER BY created_at DESC, message_id DESC) = $12 AS is_last
             FROM message_tags AS tag
             WHERE ${within('tag', 'message_id')} AND name = $8 AND value = $9
             ORDER BY created_at DESC, message_id DESC LIMIT $12
           )
           SELECT ${SUMMARY}, message.is_match, entry.is_last
           FROM entry CROSS JOIN LATERAL (
             SELECT *, ($10::text IS NULL OR status = $10) AND ($11::text IS NULL OR "to" = $11) AND NOT EXISTS (
               SELECT FROM unnest($13::text[], $14::text[]) AS other (name, value)
               WHERE NOT EXISTS (
                 SELECT FROM message_tags AS tag
                 WHERE tag.org_id = $1 AND tag.channel = $2 AND tag.name = other.name AND tag.value = other.value
                   AND tag.created_at = entry.created_at AND tag.message_id = entry.message_id
               )
             ) AS is_match
             FROM chat_messages WHERE id = entry.message_id OFFSET 0
           ) AS message
           WHERE message.is_match OR entry.is_last
           ORDER BY entry.created_at DESC, entry.message_id DESC LIMIT $7`,
    values: [
      ...[first?.name, first?.value, status, to, MAX_TAGGED_ENTRIES],
      others.map(({ name }) => name),
      others.map(({ value }) => value),
    ],
  };
}
