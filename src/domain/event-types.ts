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

/** Types that a webhook endpoint can subscribe to. */
export const EVENT_TYPES = [
  ...(Object.keys(EMAIL_EVENTS) as EmailEventType[]),
  /** No member of the batch is pending; `counts` contains the results. */
  'batch.completed',
  'chatapp.queued',
  'chatapp.scheduled',
  'chatapp.rescheduled',
  'chatapp.sent',
  'chatapp.delivered',
  'chatapp.read',
  'chatapp.failed',
  /** A user has written to a connected number. */
  'chatapp.received',
  /** A recipient of SMS has replied to a sender, possibly with a keyword. */
  'sms.received',
  'chatapp.canceled',
  'sms.queued',
  'sms.scheduled',
  'sms.rescheduled',
  'sms.sent',
  'sms.delivered',
  'sms.undelivered',
  'sms.failed',
  'sms.canceled',
  'sms.suppressed',
  'domain.created',
  'domain.verified',
  'domain.failed',
  'domain.deleted',
  'suppression.added',
  'suppression.removed',
  /** Sendwright disabled an endpoint. The organization's other endpoints receive this. */
  'webhook.disabled',
  /** Requested by a user to test an endpoint. */
  'webhook.test',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];
