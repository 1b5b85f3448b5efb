import { organizationSuspended } from '../accounts/suspension.ts';
import type { ChatContent } from '../domain/chat/chat.ts';
import type { Tag } from '../domain/email/email.ts';
import { newId } from '../lib/ids.ts';
import type { MessageChannel } from '../domain/messages/message.ts';
import { eventData, projectMessageReschedule, projectMessages } from '../projection/messages.ts';
import { type IdempotencyKey, rememberResponses } from '../store/limits/idempotency.ts';
import {
  insertMessage,
  insertMessageTags,
  type NewMessage,
  readAdmission,
  type SenderRef,
} from '../store/messages/accept.ts';
import { insertOutbox } from '../store/outbox/outbox.ts';
import { type Db, transaction } from '../store/postgres/pool.ts';
import { enqueueEvents } from '../store/webhooks/events.ts';
import { messagesAccepted } from '../telemetry/topics.ts';
import { auditByChanger, type Changer } from '../accounts/audit.ts';
import type { Caller, IntakeDeps, Limits } from './emails.ts';
import { rejectReusedKey } from './idempotency.ts';
import { parseSchedule, scheduleError, scheduleChangeError } from './schedule.ts';

export type MessageIntakeDeps = Pick<IntakeDeps, 'pool' | 'wakeRelay' | 'tracer' | 'contents'> & {
  readonly limits: Pick<Limits, 'tags'>;
};

/** The organization and API key of a request. */
export type MessageCaller = Pick<Caller, 'orgId' | 'keyId'>;

/** A valid request to send one message, without its sender. */
type MessageRequest = Omit<
  NewMessage,
  'id' | 'event_id' | 'sender' | 'traceparent' | 'sealed_content' | 'has_fallback'
> & { readonly content: ChatContent | { readonly text: string } };

/** The fields of a stored message that responses contain. */
export interface AcceptedMessage {
  readonly id: string;
  readonly status: 'queued' | 'scheduled';
  readonly from: string;
  readonly created_at: string;
  readonly scheduled_at: string | null;
}

const ID_PREFIXES = { chatapp: 'wa', sms: 'sms' } as const;

/**
 * Stores one message for delivery, with its first event, outbox row, webhooks and response.
 * @param findSender returns the sender, or throws if there is none
 * @param toResponse creates the response, which is stored under the request's idempotency key
 * @throws ServiceError validation_error for the time; insufficient_scope for a suspended organization; limit_exceeded;
 * concurrent_idempotent_requests if another request has used the key meanwhile
 */
export async function sendMessage<Response>(
  { pool, wakeRelay, limits, tracer, contents }: MessageIntakeDeps,
  orgId: string,
  { content, ...request }: MessageRequest,
  findSender: (db: Db) => Promise<SenderRef>,
  toResponse: (message: AcceptedMessage) => Response,
  idempotency?: IdempotencyKey,
): Promise<Response> {
  const { channel, scheduled_at: scheduledAt } = request;
  const admit = async (db: Db): Promise<SenderRef> => {
    const admission = await readAdmission(db, orgId, scheduledAt);
    if (admission.is_suspended) throw organizationSuspended();
    if (admission.time) throw scheduleError(admission.time);
    return findSender(db);
  };
  const newTags = new Map<string, Tag>();
  limits.tags.collectUnknown(orgId, request.tags, newTags);
  if (newTags.size > 0) {
    // Errors of the message itself take precedence over limits.
    await admit(pool);
    await limits.tags.register(orgId, newTags);
  }
  const id = newId(ID_PREFIXES[channel]);
  const sealed_content = await contents.sealMessage(pool, orgId, id, content);
  const has_fallback = 'fallback_template' in content;
  const sealed = { ...request, id, event_id: newId('evt'), sealed_content, has_fallback };
  const storing = transaction(pool, async (client) => {
    const sender = await admit(client);
    const message: NewMessage = { ...sealed, sender, traceparent: tracer?.current() };
    const { created_at, scheduled_at } = await insertMessage(client, orgId, message);
    const status = scheduled_at === null ? 'queued' : 'scheduled';
    const response = toResponse({ id, status, from: sender.from, created_at, scheduled_at });
    const event = { event_id: message.event_id, org_id: orgId, type: `${channel}.${status}`, created_at };
    const { to, country, type, segments = null } = message;
    const data = eventData(
      { id, channel, from: sender.from, to, country, type, segments },
      status,
      scheduled_at === null ? {} : { scheduled_at },
    );
    await Promise.all([
      insertMessageTags(client, orgId, message),
      insertOutbox(client, 'message', [id], message.traceparent),
      enqueueEvents(client, [{ ...event, data }]),
      rememberResponses(client, orgId, idempotency ? [{ ...idempotency, response }] : []),
    ]);
    return response;
  });
  const response = await rejectReusedKey(storing);
  messagesAccepted.publish({ kind: channel, by: 'single', count: 1 });
  wakeRelay();
  return response;
}

/**
 * Changes the time of a scheduled message.
 * @throws ServiceError validation_error, not_found or not_scheduled
 */
export async function rescheduleMessage(
  { pool, wakeRelay }: Pick<MessageIntakeDeps, 'pool' | 'wakeRelay'>,
  orgId: string,
  channel: MessageChannel,
  id: string,
  scheduledAt: string,
  changer: Changer = {},
): Promise<{ id: string; status: 'scheduled'; scheduled_at: string }> {
  const time = parseSchedule(scheduledAt);
  const newTime = await transaction(pool, async (client) => {
    const scheduled_at = await projectMessageReschedule(client, { orgId, channel }, id, time);
    if (scheduled_at === undefined) return undefined;
    await Promise.all([
      insertOutbox(client, 'message_reschedule', [id]),
      auditByChanger(client, orgId, changer, `${channel}.reschedule`, id, { scheduled_at }),
    ]);
    return scheduled_at;
  });
  if (newTime === undefined) throw await scheduleChangeError(pool, orgId, id, time, channel);
  wakeRelay();
  return { id, status: 'scheduled', scheduled_at: newTime };
}

/**
 * Cancels a scheduled message. It is not sent after this returns.
 * @throws ServiceError not_found or not_scheduled
 */
export async function cancelMessage(
  { pool, wakeRelay }: Pick<MessageIntakeDeps, 'pool' | 'wakeRelay'>,
  orgId: string,
  channel: MessageChannel,
  id: string,
  changer: Changer = {},
): Promise<{ id: string; status: 'canceled' }> {
  const isCanceled = await transaction(pool, async (client) => {
    const changed = await projectMessages(client, 'canceled', [{ id }], { orgId, channel });
    if (changed.size === 0) return false;
    await Promise.all([
      insertOutbox(client, 'message_cancel', [id]),
      auditByChanger(client, orgId, changer, `${channel}.cancel`, id),
    ]);
    return true;
  });
  if (!isCanceled) throw await scheduleChangeError(pool, orgId, id, null, channel);
  wakeRelay();
  return { id, status: 'canceled' };
}
