import type { ChatContent, ChatType } from '../domain/chat/chat.ts';
import { ServiceError } from '../domain/errors.ts';
import { newId } from '../domain/ids.ts';
import { parsePhone } from '../domain/chat/phone.ts';
import { parseRecipient } from '../domain/chat/recipient.ts';
import { endpointUrl } from '../public-fetch/endpoint-url.ts';
import { literalAddress, NOT_PUBLIC } from '../public-fetch/public-url.ts';
import { Unfetchable } from '../public-fetch/unfetchable.ts';
import { acceptChat, acceptChatWithKey, type ChatAcceptance, type ChatRefusal } from '../store/chat/messages.ts';
import type { IdempotencyKey } from '../store/limits/idempotency.ts';
import { accepted } from '../telemetry/topics.ts';
import type { IntakeDeps } from './emails.ts';
import { rejectReusedKey } from './idempotency.ts';
import { organizationSuspended } from '../accounts/suspension.ts';

/** A valid request to send one chat-app message, with defaults filled in. */
export interface ChatRequest {
  /** In international form; null for the only connected number. */
  readonly from: string | null;
  /** A number in international form, or a business-scoped user id. */
  readonly to: string;
  readonly type: ChatType;
  readonly content: ChatContent;
}

export type AcceptedChat = Omit<Extract<ChatAcceptance, { refusal: null }>, 'refusal'>;

/**
 * Stores one chat-app message for delivery.
 * @param idempotency the request's idempotency key, with which the response is stored
 * @throws ServiceError validation_error for a link that is not public, for numbers, or for a missing `from`;
 *   insufficient_scope for a suspended organization; no_chatapp_account; concurrent_idempotent_requests when another
 *   request has used the key meanwhile
 */
export async function sendChat(
  { pool, wakeRelay, tracer }: Pick<IntakeDeps, 'pool' | 'wakeRelay' | 'tracer'>,
  orgId: string,
  { from, to, type, content }: ChatRequest,
  idempotency?: IdempotencyKey,
): Promise<AcceptedChat> {
  const recipient = valid(parseRecipient(to), 'to');
  if (content.image) refusePrivate(content.image.link, 'image.link');
  if (content.document) refusePrivate(content.document.link, 'document.link');
  const now = Date.now();
  const chat = {
    id: newId('wa', now),
    event_id: newId('evt', now),
    from: from === null ? null : valid(parsePhone(from), 'from').number,
    to: recipient.to,
    country: recipient.country,
    type,
    content,
    traceparent: tracer?.current(),
  };
  const acceptance = idempotency
    ? await rejectReusedKey(acceptChatWithKey(pool, orgId, chat, idempotency))
    : await acceptChat(pool, orgId, chat);
  if (!acceptance) throw new Error('acceptChat returned no row');
  if (acceptance.refusal !== null) throw refused(acceptance.refusal, chat.from);
  accepted.publish({ kind: 'chatapp', by: 'single', count: 1 });
  wakeRelay();
  const { id, status, created_at } = acceptance;
  return { id, status, type, from: acceptance.from, country: chat.country, created_at };
}

/** @throws ServiceError validation_error */
function valid<T extends object>(parsed: T | string, param: string): T {
  if (typeof parsed === 'string') throw new ServiceError('validation_error', parsed, param);
  return parsed;
}

function refused(refusal: ChatRefusal, from: string | null): ServiceError {
  if (refusal === 'suspended') return organizationSuspended();
  if (refusal === 'several') {
    return new ServiceError('validation_error', 'is required, since several numbers are connected', 'from');
  }
  return from === null
    ? new ServiceError('no_chatapp_account', 'no chat-app number is connected to this account')
    : new ServiceError('no_chatapp_account', `the number ${from} is not connected to this account`, 'from');
}

/** Names that resolve only inside a network (RFC 6762, RFC 8375, and the one that ICANN reserves). */
const INSIDE = /(?:^|\.)(?:local|internal|home\.arpa)\.?$/;

/**
 * Refuses links that the provider's servers cannot reach. The link is not fetched.
 * @throws ServiceError validation_error
 */
function refusePrivate(link: string, param: string): void {
  try {
    const url = endpointUrl(link, []);
    const isName = literalAddress(url) === undefined;
    if (isName && (!url.hostname.replace(/\.$/, '').includes('.') || INSIDE.test(url.hostname))) {
      throw new Unfetchable(NOT_PUBLIC);
    }
  } catch (error) {
    if (!(error instanceof Unfetchable)) throw error;
    throw new ServiceError('validation_error', `must be an https URL on the public internet: ${error.message}`, param);
  }
}
