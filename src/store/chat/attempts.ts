import type { ChatContent, ChatProviderName, ChatStatus, ChatType } from '../../domain/chat/chat.ts';
import { type Db, executeOne, queryRow } from '../postgres/pool.ts';
import { SUSPENDED_FOR } from '../accounts/suspension.ts';

/** What it takes to send from a number. */
export interface SendingNumber {
  readonly id: string;
  readonly provider: ChatProviderName;
  /** What Meta calls it. */
  readonly phone_number_id: string | null;
  /** The Twilio account of its own; null for the one of the settings. */
  readonly account_sid: string | null;
  /** The token of its own, sealed; null for the one of the settings. */
  readonly credentials: Buffer | null;
}

/** A message with all that goes out. */
export interface StoredChat {
  readonly id: string;
  readonly org_id: string;
  readonly from: string;
  readonly to: string;
  readonly type: ChatType;
  readonly content: ChatContent;
  readonly status: ChatStatus;
  readonly provider_message_id: string | null;
  /** Milliseconds since it was accepted. */
  readonly late: number;
  /** Milliseconds since its organization was suspended; null while that is active. */
  readonly suspended_for: number | null;
  /** Null if it is no longer connected. */
  readonly number: SendingNumber | null;
}

/** Reads a message and locks its row until the caller's transaction ends; undefined when there is none. */
export async function lockChat(db: Db, id: string): Promise<StoredChat | undefined> {
  const { rows } = await db.query<ChatRow>({
    name: 'lock_chat',
    text: `${SELECT_CHATS} WHERE message.id = $1 FOR UPDATE OF message`,
    values: [id],
  });
  return rows.map(toStored)[0];
}

/** Reads messages as they are. */
export async function findChats(db: Db, ids: readonly string[]): Promise<StoredChat[]> {
  const { rows } = await db.query<ChatRow>({
    name: 'find_chats',
    text: `${SELECT_CHATS} WHERE message.id = ANY ($1) ORDER BY message.id`,
    values: [ids],
  });
  return rows.map(toStored);
}

interface ChatRow extends Omit<StoredChat, 'number'>, Omit<SendingNumber, 'id' | 'provider'> {
  number_id: string;
  number_provider: ChatProviderName | null;
}

const SELECT_CHATS = `
  SELECT message.id, message.org_id, message."from", message."to", message.type, message.content, message.status,
         message.provider_message_id,
         (extract(epoch FROM clock_timestamp() - message.created_at) * 1000)::float8 AS late,
         ${SUSPENDED_FOR('message.org_id')} AS suspended_for, message.number_id, number.provider AS number_provider, number.phone_number_id,
         number.account_sid, number.credentials
  FROM chat_messages AS message LEFT JOIN chat_numbers AS number ON number.id = message.number_id`;

function toStored(row: ChatRow): StoredChat {
  const { number_id: id, number_provider: provider, phone_number_id, account_sid, credentials, ...message } = row;
  return { ...message, number: provider && { id, provider, phone_number_id, account_sid, credentials } };
}

/** The status of each message; their rows are locked in the order of their ids. Those that do not exist are missing. */
export async function lockChatStatuses(db: Db, ids: readonly string[]): Promise<Map<string, ChatStatus>> {
  const { rows } = await db.query<{ id: string; status: ChatStatus }>({
    name: 'lock_chat_statuses',
    text: `SELECT id, status FROM chat_messages WHERE id = ANY ($1) ORDER BY id FOR UPDATE`,
    values: [ids],
  });
  return new Map(rows.map(({ id, status }) => [id, status]));
}

/** What a callback about a message is compared with. */
export interface ReportedChat {
  readonly id: string;
  readonly from: string;
  readonly to: string;
  /** Null until the provider took it. */
  readonly provider_message_id: string | null;
  /** Whether it may have been sent more than once, so that the provider may know it by several ids. */
  readonly is_ambiguous: boolean;
  /** Of its number; null if that is no longer connected. */
  readonly provider: ChatProviderName | null;
  readonly phone_number_id: string | null;
}

/** Messages that reports name; their rows are locked in the order of their ids. Those that do not exist are missing. */
export async function lockReportedChats(db: Db, ids: readonly string[]): Promise<Map<string, ReportedChat>> {
  const { rows } = await db.query<ReportedChat>({
    name: 'lock_reported_chats',
    text: `SELECT message.id, message."from", message."to", message.provider_message_id, number.provider, number.phone_number_id,
                  EXISTS (
                    SELECT FROM attempts
                    WHERE message_id = message.id AND (outcome IS NULL OR outcome IN ('unknown', 'risked'))
                  ) AS is_ambiguous
           FROM chat_messages AS message LEFT JOIN chat_numbers AS number ON number.id = message.number_id
           WHERE message.id = ANY ($1) ORDER BY message.id FOR UPDATE OF message`,
    values: [ids],
  });
  return new Map(rows.map((row) => [row.id, row]));
}

/** Whether a provider's id is known as that of another message to the same recipient. */
export function isAnotherChats(
  db: Db,
  { id, org_id, to }: Pick<StoredChat, 'id' | 'org_id' | 'to'>,
  providerMessageId: string,
): Promise<boolean> {
  return executeOne(db, {
    name: 'is_another_chats',
    text: `SELECT FROM chat_messages WHERE org_id = $1 AND "to" = $2 AND id <> $3 AND provider_message_id = $4 LIMIT 1`,
    values: [org_id, to, id, providerMessageId],
  });
}

/** The number that sends a message; undefined if the message does not exist or its number is no longer connected. */
export function findNumberOf(db: Db, messageId: string): Promise<SendingNumber | undefined> {
  return queryRow(db, {
    name: 'find_number_of_chat',
    text: `SELECT number.id, number.provider, number.phone_number_id, number.account_sid, number.credentials
           FROM chat_messages AS message JOIN chat_numbers AS number ON number.id = message.number_id
           WHERE message.id = $1`,
    values: [messageId],
  });
}
