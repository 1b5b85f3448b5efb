import { parseSmsRecipient } from '../domain/chat/recipient.ts';
import type { Tag } from '../domain/email/email.ts';
import { requireValid, ServiceError } from '../domain/errors.ts';
import { sizeOf, type SmsEncoding } from '../domain/sms/segments.ts';
import { parseSender, SENDER_PROBLEM } from '../domain/sms/senders.ts';
import type { IdempotencyKey } from '../store/limits/idempotency.ts';
import type { SenderRef } from '../store/messages/accept.ts';
import type { Db } from '../store/postgres/pool.ts';
import { findSender } from '../store/sms/senders.ts';
import { type AcceptedMessage, type MessageCaller, type MessageIntakeDeps, sendMessage } from './messages.ts';
import { parseSchedule } from './schedule.ts';

/** A valid request to send one SMS, with defaults filled in. */
export interface SmsRequest {
  /** A number, short code or messaging service; null chooses a sender that serves the recipient's country. */
  readonly from: string | null;
  /** In international form. */
  readonly to: string;
  readonly text: string;
  readonly tags: readonly Tag[];
  /** Null for immediately. */
  readonly scheduled_at: string | null;
}

export interface AcceptedSms extends AcceptedMessage {
  readonly to: string;
  readonly country: string;
  readonly segments: number;
  readonly encoding: SmsEncoding;
}

/**
 * Stores one SMS for delivery.
 * @param idempotency the request's idempotency key, with which the response is stored
 * @throws ServiceError validation_error for numbers; no_sms_sender; the errors of `sendMessage`
 */
export async function sendSms(
  deps: MessageIntakeDeps,
  { orgId, keyId: key_id }: MessageCaller,
  { from, to, text, tags, scheduled_at: time }: SmsRequest,
  idempotency?: IdempotencyKey,
): Promise<AcceptedSms> {
  const { to: number, country } = requireValid(parseSmsRecipient(to), 'to');
  const sender = from === null ? null : parseSender(from);
  if (sender === undefined) throw new ServiceError('validation_error', SENDER_PROBLEM, 'from');
  const { segments, encoding } = sizeOf(text);
  const scheduled_at = time === null ? null : parseSchedule(time);
  return sendMessage(
    deps,
    orgId,
    {
      channel: 'sms',
      to: number,
      country,
      type: 'text',
      content: { text },
      tags,
      scheduled_at,
      segments,
      encoding,
      key_id,
    },
    (db) => chooseSender(db, orgId, sender, country),
    ({ id, status, from: address, created_at, scheduled_at: due }) => {
      const endpoints = { from: address, to: number, country };
      return { id, status, ...endpoints, segments, encoding, created_at, scheduled_at: due };
    },
    idempotency,
  );
}

async function chooseSender(db: Db, orgId: string, from: string | null, country: string): Promise<SenderRef> {
  const match = await findSender(db, orgId, from, country);
  if (match) return { id: match.id, from: match.sender };
  throw from === null
    ? new ServiceError('no_sms_sender', `no sender of this account serves ${country}`)
    : new ServiceError('no_sms_sender', `the sender ${from} is not connected to this account for ${country}`, 'from');
}
