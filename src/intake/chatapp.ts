import { parseContact, parseRecipient, type Recipient } from '../domain/chat/recipient.ts';
import { literalAddress, NOT_PUBLIC } from '../public-fetch/public-url.ts';
import type { ChatContent, ChatType } from '../domain/chat/chat.ts';
import { parsePhone } from '../domain/chat/phone.ts';
import type { Tag } from '../domain/email/email.ts';
import { requireValid, ServiceError } from '../domain/errors.ts';
import { endpointUrl, requireFetchable } from '../public-fetch/endpoint-url.ts';
import { Unfetchable } from '../public-fetch/unfetchable.ts';
import { hasWritten } from '../store/chat/contacts.ts';
import type { IdempotencyKey } from '../store/limits/idempotency.ts';
import { findSendingNumbers, type SenderRef } from '../store/messages/accept.ts';
import type { Db } from '../store/postgres/pool.ts';
import { type MessageCaller, type MessageIntakeDeps, sendMessage } from './messages.ts';
import { parseSchedule } from './schedule.ts';

/** A valid request to send one chat-app message, with defaults filled in. */
export interface ChatRequest {
  /** In international form; null if the organization has only one connected number. */
  readonly from: string | null;
  /** A number in international form, or a business-scoped user id. */
  readonly to: string;
  readonly type: ChatType;
  readonly content: ChatContent;
  readonly tags: readonly Tag[];
  /** Null for immediately. */
  readonly scheduled_at: string | null;
}

export interface AcceptedChat {
  readonly id: string;
  readonly status: 'queued' | 'scheduled';
  readonly type: ChatType;
  readonly from: string;
  readonly country: string;
  readonly created_at: string;
  /** Only present if the request has it, because the response of the API contract has no such field. */
  readonly scheduled_at?: string;
}

/**
 * Stores one chat-app message for delivery.
 * @param idempotency the request's idempotency key, with which the response is stored
 * @throws ServiceError validation_error for a link that is not public, for numbers, or for a missing `from`; no_chatapp_account;
 * the errors of `sendMessage`
 */
export async function sendChat(
  deps: MessageIntakeDeps,
  { orgId, keyId: key_id }: MessageCaller,
  { from, to, type, content, tags, scheduled_at: time }: ChatRequest,
  idempotency?: IdempotencyKey,
): Promise<AcceptedChat> {
  const recipient = await requireRecipient(deps.pool, orgId, to);
  if (content.image) refusePrivate(content.image.link, 'image.link');
  if (content.document) refusePrivate(content.document.link, 'document.link');
  const sender = from === null ? null : requireValid(parsePhone(from), 'from').number;
  const scheduled_at = time === null ? null : parseSchedule(time);
  return sendMessage(
    deps,
    orgId,
    { channel: 'chatapp', ...recipient, type, content, tags, scheduled_at, key_id },
    (db) => chooseNumber(db, orgId, sender),
    ({ id, status, from: number, created_at, scheduled_at: due }) => {
      const accepted = { id, status, type, from: number, country: recipient.country, created_at };
      return due === null ? accepted : { ...accepted, scheduled_at: due };
    },
    idempotency,
  );
}

/** @throws ServiceError validation_error for a number that is in no numbering plan, unless a user has written from it */
async function requireRecipient(db: Db, orgId: string, to: string): Promise<Recipient> {
  const recipient = parseRecipient(to);
  if (typeof recipient !== 'string') return recipient;
  const contact = parseContact(to);
  if (typeof contact !== 'string' && (await hasWritten(db, orgId, contact.to))) return contact;
  throw new ServiceError('validation_error', recipient, 'to');
}

async function chooseNumber(db: Db, orgId: string, from: string | null): Promise<SenderRef> {
  const [number, another] = await findSendingNumbers(db, orgId, from);
  if (another) throw new ServiceError('validation_error', 'is required, since several numbers are connected', 'from');
  if (number) return number;
  throw from === null
    ? new ServiceError('no_chatapp_account', 'no chat-app number is connected to this account')
    : new ServiceError('no_chatapp_account', `the number ${from} is not connected to this account`, 'from');
}

/** Names that resolve only inside a network (RFC 6762, RFC 8375, and `internal`, which ICANN reserves). */
const INTERNAL_NAME = /(?:^|\.)(?:local|internal|home\.arpa)\.?$/;

/**
 * Refuses links that the provider's servers cannot reach. Does not fetch them.
 * @throws ServiceError validation_error
 */
function refusePrivate(link: string, param: string): void {
  requireFetchable(param, () => {
    const url = endpointUrl(link, []);
    const isName = literalAddress(url) === undefined;
    if (isName && (!url.hostname.replace(/\.$/, '').includes('.') || INTERNAL_NAME.test(url.hostname))) {
      throw new Unfetchable(NOT_PUBLIC);
    }
  });
}
