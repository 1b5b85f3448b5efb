/** Types that a webhook endpoint can subscribe to. */
export const EVENT_TYPES = [
  'email.queued',
  'email.scheduled',
  'email.rescheduled',
  'email.sent',
  'email.delivery_delayed',
  'email.delivered',
  'email.opened',
  'email.clicked',
  'email.bounced',
  'email.complained',
  'email.unsubscribed',
  'email.suppressed',
  'email.canceled',
  'email.rejected',
  'email.failed',
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
/** Entries of an email's timeline, and webhook event types. */
export type EmailEventType = Extract<EventType, `email.${string}`>;
