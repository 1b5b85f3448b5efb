import type { ChatProviderName } from '../../domain/chat/chat.ts';
import type { Contact } from '../../domain/chat/contacts.ts';
import { type InboundCallback, type InboundMessage, MEDIA_LINK_SECONDS } from '../../domain/chat/inbound.ts';
import { whatsAppForms } from '../../domain/chat/phone.ts';
import { type Db, queryRow, queryValue } from '../postgres/pool.ts';
import type { SendingNumber } from '../messages/delivery.ts';

export interface ReceivingNumber {
  readonly id: string;
  readonly org_id: string;
  readonly number: string;
  readonly provider: ChatProviderName;
}

/**
 * Finds the number that received a callback and locks it, so that one transaction at a time writes its contacts. A number that
 * neither the provider nor the operator has confirmed receives no messages.
 */
export function lockReceivingNumber(db: Db, callback: InboundCallback): Promise<ReceivingNumber | undefined> {
  const [column, value] =
    callback.provider === 'meta' ? ['phone_number_id', callback.phoneNumberId] : ['number', callback.number];
  return queryRow(db, {
    name: `lock_receiving_number_by_${column}`,
    text: `SELECT id, org_id, number, provider FROM chat_numbers
           WHERE ${column} = $1 AND provider = $2 AND verified_by IS NOT NULL ORDER BY id LIMIT 1 FOR NO KEY UPDATE`,
    values: [value, callback.provider],
  });
}

/**
 * Finds a number that receives messages through Twilio, with its sealed token, by which its callbacks are signed. `credentials` is
 * null for a number without its own token, which uses that of the settings.
 */
export function findReceivingNumber(
  db: Db,
  number: string,
): Promise<(Pick<SendingNumber, 'id' | 'credentials'> & Pick<ReceivingNumber, 'org_id' | 'number'>) | undefined> {
  return queryRow(db, {
    name: 'find_receiving_number',
    text: `SELECT id, org_id, number, credentials FROM chat_numbers WHERE number = $1 AND provider = 'twilio' AND verified_by IS NOT NULL`,
    values: [number],
  });
}

export interface RecordedInbound {
  /** The provider's time of the message, but not in the future. */
  readonly sent_at: string;
  /** Unix seconds; when a link to its file ends. */
  readonly link_expires: number;
}

/**
 * Records a message of a user unless it is not kept, and that its number receives messages.
 * @returns undefined if the message is recorded already
 */
export function recordInbound(
  db: Db,
  { id: numberId, org_id, number, provider }: ReceivingNumber,
  id: string,
  { providerMessageId, media, sentAt }: InboundMessage,
  isKept: boolean,
): Promise<RecordedInbound | undefined> {
  return queryRow(db, {
    name: 'record_inbound',
    text: `WITH receives AS (
             UPDATE chat_numbers SET receives_since = now() WHERE id = $3 AND receives_since IS NULL
           ), kept AS (
             INSERT INTO chat_inbound (id, org_id, number_id, number, provider, provider_message_id, media, content_type, filename)
             SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9 WHERE $11 ON CONFLICT DO NOTHING RETURNING id
           )
           SELECT least(now(), coalesce(to_timestamp($10::float8), now()))::timestamptz(3) AS sent_at,
                  floor(extract(epoch FROM now()))::float8 + ${MEDIA_LINK_SECONDS} AS link_expires
           WHERE NOT $11 OR EXISTS (SELECT FROM kept)`,
    values: [
      id,
      org_id,
      numberId,
      number,
      provider,
      providerMessageId,
      media?.reference ?? null,
      media?.contentType ?? null,
      media?.filename ?? null,
      sentAt === null ? null : sentAt / 1_000,
      isKept,
    ],
  });
}

/** Finds our id of a message that a user answers: a message to the user, or one of the user's own. */
export function findAnsweredMessage(
  db: Db,
  { org_id, number }: ReceivingNumber,
  { wa_number, user_id, former_user_id }: Contact,
  providerMessageId: string,
): Promise<string | undefined> {
  const recipients = [wa_number, user_id, former_user_id].flatMap((id) => (id === null ? [] : whatsAppForms(id)));
  return queryValue(db, {
    name: 'find_answered_message',
    text: `(SELECT id FROM chat_messages WHERE org_id = $1 AND "to" = ANY ($2) AND provider_message_id = $3 LIMIT 1)
           UNION ALL
           (SELECT id FROM chat_inbound WHERE org_id = $1 AND number = $4 AND provider_message_id = $3)`,
    values: [org_id, recipients, providerMessageId, number],
  });
}

/** A file of a message, with the number that received it. */
export interface StoredMedia {
  readonly org_id: string;
  readonly reference: string;
  readonly content_type: string;
  readonly filename: string | null;
  readonly number: SendingNumber;
}

/**
 * Finds the file of a message while a link to it is valid. If its number was connected again by the same provider, the file is
 * fetched with the new token.
 * @param expires of the link, in Unix seconds
 */
export async function findInboundMedia(db: Db, id: string, expires: number): Promise<StoredMedia | undefined> {
  const row = await queryRow<
    Omit<StoredMedia, 'number'> & Omit<SendingNumber, 'id' | 'channel'> & { number_id: string }
  >(db, {
    name: 'find_inbound_media',
    text: `SELECT inbound.org_id, inbound.media AS reference, inbound.content_type, inbound.filename, number.id AS number_id,
                  number.provider, number.phone_number_id, number.account_sid, number.credentials
           FROM chat_inbound AS inbound JOIN chat_numbers AS number
             ON number.id = inbound.number_id
                OR (number.org_id = inbound.org_id AND number.number = inbound.number AND number.provider = inbound.provider)
           WHERE inbound.id = $1 AND inbound.media IS NOT NULL AND to_timestamp($2) > now()`,
    values: [id, expires],
  });
  if (!row) return undefined;
  const { number_id, provider, phone_number_id, account_sid, credentials, ...media } = row;
  return {
    ...media,
    number: { id: number_id, channel: 'chatapp', provider, phone_number_id, account_sid, credentials },
  };
}
