import type { ChatType } from '../../domain/chat/chat.ts';
import type { Tag } from '../../domain/email/email.ts';
import type { MessageChannel } from '../../domain/messages/message.ts';
import { setOf } from '../../domain/statistics.ts';
import { IS_SUSPENDED } from '../accounts/suspension.ts';
import { timeProblem } from '../emails/emails.ts';
import { columns } from '../postgres/columns.ts';
import { type Db, execute, queryOneRow, queryRows } from '../postgres/pool.ts';

/** A number or service that messages are sent from. */
export interface SenderRef {
  readonly id: string;
  /** As messages show it: E.164, or the SID of a messaging service. */
  readonly from: string;
}

/** The facts that decide whether a message may be stored, by the database's clock. */
export interface Admission {
  readonly is_suspended: boolean;
  readonly time: 'past' | 'far' | null;
}

/** @param scheduledAt UTC, or null for immediately */
export async function readAdmission(db: Db, orgId: string, scheduledAt: string | null): Promise<Admission> {
  return queryOneRow(db, {
    name: 'read_admission',
    text: `SELECT ${IS_SUSPENDED('$1')} AS is_suspended,
                  ${timeProblem('$2::timestamptz')} AS time`,
    values: [orgId, scheduledAt],
  });
}

/**
 * Finds the chat-app numbers of an organization, or the one with this number. Returns at most two, which suffice to refuse a
 * request without a number.
 */
export function findSendingNumbers(db: Db, orgId: string, number: string | null): Promise<SenderRef[]> {
  return queryRows(db, {
    name: 'find_sending_numbers',
    text: `SELECT id, number AS "from" FROM chat_numbers WHERE org_id = $1 AND ($2::text IS NULL OR number = $2) LIMIT 2`,
    values: [orgId, number],
  });
}

/** A valid message to store. */
export interface NewMessage {
  readonly id: string;
  readonly event_id: string;
  readonly channel: MessageChannel;
  readonly sender: SenderRef;
  /** E.164. */
  readonly to: string;
  readonly country: string;
  readonly type: ChatType;
  /** Its content, encrypted. */
  readonly sealed_content: Buffer;
  /** True if its content has a fallback template. */
  readonly has_fallback: boolean;
  readonly tags: readonly Tag[];
  /** UTC, or null for immediately. */
  readonly scheduled_at: string | null;
  /** Of an SMS. */
  readonly encoding?: 'gsm7' | 'ucs2';
  readonly segments?: number;
  /** The span of its request, which its delivery continues. */
  readonly traceparent?: string | undefined;
  /** The API key of its request. */
  readonly key_id?: string | undefined;
}

export interface StoredMessageTime {
  readonly created_at: string;
  readonly scheduled_at: string | null;
}

const ACCEPTED = setOf('accepted');

/** Stores a message with its first event. The caller adds its outbox row and webhooks in the same transaction. */
export async function insertMessage(db: Db, orgId: string, message: NewMessage): Promise<StoredMessageTime> {
  const { id, channel, sender, to, country, type, scheduled_at, encoding, segments, key_id, has_fallback } = message;
  const status = scheduled_at === null ? 'queued' : 'scheduled';
  const fields = { to, country, type, status, scheduled_at, encoding, segments, key_id, has_fallback };
  const row = { id, org_id: orgId, channel, number_id: sender.id, from: sender.from, ...fields };
  return queryOneRow(db, {
    name: 'insert_message',
    text: `WITH stored AS (
             INSERT INTO chat_messages (id, org_id, channel, number_id, "from", "to", country, type, status, scheduled_at,
                                        encoding, segments, content, sealed_content, has_fallback, tags, created_at, last_event_at,
                                        look_at, key_id, reached)
             SELECT id, org_id, channel, number_id, "from", "to", country, type, status, scheduled_at,
                    encoding, segments, 'null', $2, has_fallback, $3::jsonb, now(), now(),
                    coalesce(scheduled_at, now()) + interval '10 minutes', key_id, ${ACCEPTED}
             FROM jsonb_to_record($1) AS input(id text, org_id text, channel text, number_id text, "from" text, "to" text,
                    country text, type text, status text, scheduled_at timestamptz, encoding text, segments integer,
                    key_id text, has_fallback boolean)
             RETURNING id, channel, status, created_at, scheduled_at, key_id, tags
           ), recorded AS (
             INSERT INTO chat_events (message_id, id, type, created_at)
             SELECT id, $4, channel || '.' || status, created_at FROM stored
           ), counted AS (
             INSERT INTO stat_additions (org_id, channel, hour, key_id, tags, states, messages)
             SELECT $5, channel, date_trunc('hour', created_at, 'UTC'), key_id, nullif(tags, '[]'), ${ACCEPTED}, 1 FROM stored
           )
           SELECT created_at, scheduled_at FROM stored`,
    // The driver writes objects as JSON, but arrays as those of Postgres.
    values: [row, message.sealed_content, JSON.stringify(message.tags), message.event_id, orgId],
  });
}

/** Stores the tags of a message by which lists find it. */
export async function insertMessageTags(
  db: Db,
  orgId: string,
  { id, channel, tags }: Pick<NewMessage, 'id' | 'channel' | 'tags'>,
): Promise<void> {
  if (tags.length === 0) return;
  await execute(db, {
    name: 'insert_message_tags',
    text: `INSERT INTO message_tags (org_id, channel, name, value, created_at, message_id)
           SELECT $1, $2, name, value, now()::timestamptz(3), $3 FROM unnest($4::text[], $5::text[]) AS tag(name, value)`,
    values: [orgId, channel, id, ...columns(tags, 'name', 'value')],
  });
}
