import type { ChatContent, ChatProviderName, ChatType } from '../../domain/chat/chat.ts';
import type { MessageChannel, MessageStatus } from '../../domain/messages/message.ts';
import type { EmailContents, StoredMessageContent } from '../emails/contents.ts';
import { lockText } from '../postgres/lock.ts';
import { type Db, executeOne, queryColumn, queryRow, queryRows } from '../postgres/pool.ts';
import { IS_SUSPENDED, SUSPENDED_FOR } from '../accounts/suspension.ts';

/** The provider and credentials of a number or SMS sender. */
export interface SendingNumber {
  readonly id: string;
  readonly channel: MessageChannel;
  readonly provider: ChatProviderName;
  /** Meta's id of the number. */
  readonly phone_number_id: string | null;
  /** Its own Twilio account; null for that of the settings. */
  readonly account_sid: string | null;
  /** Its own token, sealed; null for that of the settings. */
  readonly credentials: Buffer | null;
}

/** A message with everything that is sent. */
export interface StoredMessage {
  readonly id: string;
  readonly org_id: string;
  readonly channel: MessageChannel;
  readonly from: string;
  readonly to: string;
  readonly type: ChatType;
  readonly content: ChatContent;
  readonly status: MessageStatus;
  readonly scheduled_at: string | null;
  readonly schedule_version: number;
  /** The workflow that delivers it. */
  readonly workflow_id: string;
  readonly provider: ChatProviderName | null;
  readonly provider_message_id: string | null;
  /** The time since which it is sent as its fallback template; then `type` and `content` are those of the template. */
  readonly fallback_at: string | null;
  /** By the database's clock; 0 when it is due. */
  readonly dueInMs: number;
  /** Time since it was due. */
  readonly overdueMs: number;
  /** Time since its organization was suspended; null while that is active. */
  readonly suspendedForMs: number | null;
  /** True if the recipient of an SMS has opted out of its sender. */
  readonly has_opted_out: boolean;
  /** True if its organization has erased recipients. */
  readonly has_erasures: boolean;
  /** Null if it is no longer connected. */
  readonly number: SendingNumber | null;
}

/** Part of a statement: chat-app numbers and SMS senders. SMS are sent with the account of the settings. */
export const SENDERS = `(
  SELECT id, provider, phone_number_id, account_sid, credentials FROM chat_numbers
  UNION ALL SELECT id, 'twilio', NULL, NULL, NULL FROM sms_senders
)`;

/** Reads messages and locks their rows, in the order of their ids, until the caller's transaction ends. */
export function lockMessages(db: Db, contents: EmailContents, ids: readonly string[]): Promise<StoredMessage[]> {
  return readMessages(db, contents, 'lock_messages', 'FOR UPDATE OF message', ids);
}

/** Reads messages as they are. */
export function findMessages(db: Db, contents: EmailContents, ids: readonly string[]): Promise<StoredMessage[]> {
  return readMessages(db, contents, 'find_messages', '', ids);
}

interface MessageRow
  extends
    Omit<StoredMessage, 'number' | 'content'>,
    Omit<SendingNumber, 'id' | 'channel' | 'provider'>,
    StoredMessageContent {
  number_id: string;
  number_provider: ChatProviderName | null;
}

/** OFFSET 0 prevents a plan that reads all opt-outs. */
async function readMessages(
  db: Db,
  contents: EmailContents,
  name: string,
  locking: string,
  ids: readonly string[],
): Promise<StoredMessage[]> {
  const rows = await queryRows<MessageRow>(db, {
    name,
    text: `SELECT message.id, message.org_id, message.channel, message."from", message."to", message.type, message.content,
                  message.sealed_content, message.status, message.scheduled_at, message.schedule_version,
                  coalesce(message.workflow_id, message.id) AS workflow_id, message.provider, message.provider_message_id,
                  message.fallback_at,
                  greatest(ceil(extract(epoch FROM message.scheduled_at - clock_timestamp()) * 1000), 0)::float8 AS "dueInMs",
                  (extract(epoch FROM clock_timestamp() - coalesce(message.scheduled_at, message.created_at)) * 1000)::float8
                    AS "overdueMs",
                  ${SUSPENDED_FOR('message.org_id')} AS "suspendedForMs",
                  message.channel = 'sms' AND EXISTS (
                    SELECT FROM sms_opt_outs
                    WHERE org_id = message.org_id AND sender = message."from" AND recipient = message."to" OFFSET 0
                  ) AS has_opted_out,
                  EXISTS (SELECT FROM erased_recipients WHERE org_id = message.org_id OFFSET 0) AS has_erasures,
                  message.number_id,
                  number.provider AS number_provider, number.phone_number_id, number.account_sid, number.credentials
           FROM chat_messages AS message LEFT JOIN ${SENDERS} AS number ON number.id = message.number_id
           WHERE message.id = ANY ($1) ORDER BY message.id ${locking}`,
    values: [ids],
  });
  return Promise.all(rows.map((row) => toStored(db, contents, row)));
}

async function toStored(db: Db, contents: EmailContents, row: MessageRow): Promise<StoredMessage> {
  const { number_id, number_provider: provider, phone_number_id, account_sid, credentials, ...message } = row;
  const { sealed_content, content: unsealed, ...rest } = message;
  const content = await contents.openMessage(db, { ...rest, sealed_content, content: unsealed });
  const account = { phone_number_id, account_sid, credentials };
  const number = provider && { id: number_id, channel: message.channel, provider, ...account };
  const stored = { ...rest, content, number };
  return stored.fallback_at === null ? stored : asFallback(stored);
}

/** Returns the message as its fallback template. */
export function asFallback(message: StoredMessage): StoredMessage {
  const { fallback_template: template } = message.content;
  if (!template) return message;
  const content = { text: null, preview_url: false, template, image: null, document: null };
  return { ...message, type: 'template', content };
}

/** Locks messages, all or those of one workflow. @returns their statuses; those that do not exist are missing */
export async function lockMessageStatuses(
  db: Db,
  ids: readonly string[],
  workflowId?: string,
): Promise<Map<string, MessageStatus>> {
  const rows = await queryRows<{ id: string; status: MessageStatus }>(db, {
    name: 'lock_message_statuses',
    text: `SELECT id, status FROM chat_messages
           WHERE id = ANY ($1) AND ($2::text IS NULL OR coalesce(workflow_id, id) = $2) ORDER BY id FOR UPDATE`,
    values: [ids, workflowId],
  });
  return new Map(rows.map(({ id, status }) => [id, status]));
}

/** A member of a group of messages. */
export interface GroupedMessage {
  readonly id: string;
  readonly org_id: string;
  readonly number_id: string;
  readonly status: MessageStatus;
  readonly provider: ChatProviderName | null;
  /** False if nothing is left to do for it: it has ended, and no attempt of it is ambiguous. */
  readonly is_open: boolean;
}

/** Reads the members of a group. OFFSET 0 prevents a plan that reads all attempts. */
export function readGroupedMessages(db: Db, ids: readonly string[]): Promise<GroupedMessage[]> {
  return queryRows(db, {
    name: 'read_grouped_messages',
    text: `SELECT id, org_id, number_id, status, provider,
                  status IN ('queued', 'scheduled') OR EXISTS (
                    SELECT FROM attempts
                    WHERE message_id = message.id AND (outcome IS NULL OR outcome = 'unknown') OFFSET 0
                  ) AS is_open
           FROM chat_messages AS message WHERE id = ANY ($1)`,
    values: [ids],
  });
}

/** Returns the messages whose organization is suspended. */
export async function findSuspendedMessages(db: Db, ids: readonly string[]): Promise<Set<string>> {
  const suspended = await queryColumn<string>(db, {
    name: 'find_suspended_messages',
    text: `SELECT id FROM chat_messages AS message WHERE id = ANY ($1) AND ${IS_SUSPENDED('message.org_id')}`,
    values: [ids],
  });
  return new Set(suspended);
}

/** The fields of a message that a callback must match. */
export interface ReportedMessage {
  readonly id: string;
  readonly from: string;
  readonly to: string;
  /** Null until the provider has accepted it. */
  readonly provider_message_id: string | null;
  /** True if it may have been sent more than once, so that the provider may have several ids for it. */
  readonly is_ambiguous: boolean;
  /** Ids that the provider gave it before it was sent as its fallback template. */
  readonly replaced_ids: readonly string[];
  /** True if it is sent as its fallback template. */
  readonly is_fallback: boolean;
  /** The provider of its number; null if the number is no longer connected. */
  readonly provider: ChatProviderName | null;
  readonly phone_number_id: string | null;
}

/**
 * Locks messages of reports in the order of their ids, and reads them. Messages that do not exist are missing. OFFSET 0 prevents
 * a plan that reads all attempts.
 */
export async function lockReported(db: Db, ids: readonly string[]): Promise<Map<string, ReportedMessage>> {
  // The second statement sees what the last holder of the locks has changed in other tables.
  const [, rows] = await Promise.all([
    lockMessageStatuses(db, ids),
    queryRows<ReportedMessage>(db, {
      name: 'read_reported',
      text: `SELECT message.id, message."from", message."to", message.provider_message_id, number.provider, number.phone_number_id,
                  EXISTS (
                    SELECT FROM attempts
                    WHERE message_id = message.id AND (outcome IS NULL OR outcome IN ('unknown', 'risked')) OFFSET 0
                  ) AS is_ambiguous,
                  ARRAY (
                    SELECT provider_message_id FROM attempts
                    WHERE message_id = message.id AND outcome = 'again' AND provider_message_id IS NOT NULL
                  ) AS replaced_ids,
                  message.fallback_at IS NOT NULL AS is_fallback
           FROM chat_messages AS message LEFT JOIN ${SENDERS} AS number ON number.id = message.number_id
           WHERE message.id = ANY ($1)`,
      values: [ids],
    }),
  ]);
  return new Map(rows.map((row) => [row.id, row]));
}

/**
 * Returns true if a provider's id belongs to another message to the same recipient, or to the text of this one before it was
 * requeued as its fallback template. Only the attempt has the id if a message was requeued, or if the answer is not applied yet.
 */
export function belongsToAnotherMessage(
  db: Db,
  { id, org_id, to }: Pick<StoredMessage, 'id' | 'org_id' | 'to'>,
  providerMessageId: string,
): Promise<boolean> {
  // Without a name, so that no plan for small tables is cached. The array has the attempts read by their primary key.
  return executeOne(
    db,
    `SELECT FROM chat_messages AS other
     WHERE org_id = $1 AND "to" = $2
       AND (provider_message_id = $4 AND id <> $3
            OR $4 = ANY (ARRAY (SELECT provider_message_id FROM attempts
                                WHERE message_id = other.id AND (message_id <> $3 OR outcome = 'again'))))
     LIMIT 1`,
    [org_id, to, id, providerMessageId],
  );
}

/**
 * Finds other messages with the same sender and recipient that the provider may have accepted in a period, by Postgres's clock,
 * although we know no id of them. They include those that it was asked for in vain.
 * @param maxCallMs a call without a recorded end has certainly ended this long after its start
 */
export async function findAmbiguousOthers(
  db: Db,
  contents: EmailContents,
  { id, org_id, channel, from, to }: Pick<StoredMessage, 'id' | 'org_id' | 'channel' | 'from' | 'to'>,
  { fromMs, untilMs, maxCallMs }: { readonly fromMs: number; readonly untilMs: number; readonly maxCallMs: number },
): Promise<StoredMessage[]> {
  // Without a name, so that no plan for small tables is cached. OFFSET 0 prevents a plan that reads all attempts.
  const ids = await queryColumn<string>(
    db,
    `SELECT id FROM chat_messages AS other
     WHERE org_id = $1 AND channel = $2 AND "from" = $3 AND "to" = $4 AND id <> $5
       AND EXISTS (
         SELECT FROM attempts
         WHERE message_id = other.id
           AND (outcome = 'lost' OR other.provider_message_id IS NULL AND (outcome IS NULL OR outcome = 'unknown'))
           AND started_at <= to_timestamp($7::float8 / 1000)
           AND greatest(started_at + $8 * interval '1 ms', CASE WHEN outcome = 'unknown' THEN ended_at END)
               >= to_timestamp($6::float8 / 1000) OFFSET 0)`,
    [org_id, channel, from, to, id, fromMs, untilMs, maxCallMs],
  );
  return findMessages(db, contents, ids);
}

/** Locks a provider's id until the transaction ends, so that only one of several equal messages takes it. */
export function lockProviderId(db: Db, providerMessageId: string): Promise<void> {
  return lockText(db, providerMessageId);
}

/** Finds the number that sends a message; undefined if the message does not exist or its number is no longer connected. */
export function findNumberOf(
  db: Db,
  messageId: string,
): Promise<(SendingNumber & { readonly org_id: string; readonly number: string }) | undefined> {
  return queryRow(db, {
    name: 'find_number_of_message',
    text: `SELECT number.id, message.org_id, message."from" AS number, message.channel, number.provider, number.phone_number_id, number.account_sid, number.credentials
           FROM chat_messages AS message JOIN ${SENDERS} AS number ON number.id = message.number_id
           WHERE message.id = $1`,
    values: [messageId],
  });
}
