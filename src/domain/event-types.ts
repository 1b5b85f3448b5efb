import type { EmailEventType } from './email/states.ts';

const EMAIL_EVENTS: Readonly<Record<EmailEventType, true>> = {
  'email.queued': true,
  'email.scheduled': true,
  'email.rescheduled': true,
  'email.sent': true,
  'email.delivery_delayed': true,
  'email.delivered': true,
  'email.opened': true,
  'email.clicked': true,
  'email.bounced': true,
  'email.complained': true,
  'email.unsubscribed': true,
  'email.suppressed': true,
  'email.canceled': true,
  'email.rejected': true,
  'email.failed': true,
};

/** Everything that a customer's endpoint can ask to be told of. */
export const EVENT_TYPES = [
  ...(Object.keys(EMAIL_EVENTS) as EmailEventType[]),
  /** No email of a batch waits any more; what became of them, its counts tell. */
  'batch.completed',
  'chatapp.queued',
  'chatapp.sent',
  'chatapp.delivered',
  'chatapp.read',
  'chatapp.failed',
  'domain.created',
  'domain.verified',
  'domain.failed',
  'domain.deleted',
  'suppression.added',
  'suppression.removed',
  /** Sendwright disabled an endpoint, which itself no longer gets anything: the organization's other endpoints get this. */
  'webhook.disabled',
  /** Requested by a person, to see whether it arrives. */
  'webhook.test',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];
