import type { EventType } from '../../domain/event-types.ts';
import { EVENTS } from '../schemas/events.ts';

const EXAMPLE_TIME = '2026-03-01T09:30:02.431Z';
const LATER_TIME = '2026-03-03T08:00:00.000Z';
const EMAIL_ID = 'em_01kajc8wz6h3xkq3m1x8e6v5tn';

type Data = Readonly<Record<string, unknown>>;

/** The name of a webhook in generated clients, its summary, and an example of `data` for each event type. */
interface EventDoc {
  readonly operationId: string;
  readonly summary: string;
  readonly data: Readonly<Partial<Record<EventType, Data>>>;
}

const email = (status: string, more: Data = {}): Data => ({
  emailId: EMAIL_ID,
  from: 'Example <hello@example.com>',
  to: ['Ada <ada@example.net>'],
  subject: 'Your receipt',
  tags: [{ name: 'kind', value: 'receipt' }],
  status,
  ...more,
});
const RECIPIENT_DATA = { recipient: 'ada@example.net' };

const phone = (id: string, status: string, more: Data): Data => ({
  messageId: id,
  from: '+12025550142',
  to: '+14165550123',
  country: 'CA',
  status,
  ...more,
});
const chat = (status: string, more: Data = {}): Data =>
  phone('wa_01kajce1x8m4n6p0r2t5v7w9yz', status, { type: 'text', ...more });
const sms = (status: string, more: Data = {}): Data =>
  phone('sms_01kajce1x8m4n6p0r2t5v7w9yz', status, { segments: 1, ...more });
const domain = (status: string): Data => ({
  domainId: 'dm_01kajcf3g5h7j9k1m3n5p7q9rs',
  name: 'mail.example.com',
  status,
});
const suppression = {
  suppressionId: 'sup_01kajc9f2bq0w8e5r7t1y3u6ip',
  email: 'ada@example.net',
  origin: 'bounce',
  bounceReason: 'mailbox_not_found',
  emailId: EMAIL_ID,
};

const DOCS: Readonly<Record<keyof typeof EVENTS, EventDoc>> = {
  email: {
    operationId: 'onEmailEvent',
    summary: 'Email event',
    data: {
      'email.queued': email('queued'),
      'email.scheduled': email('scheduled', { scheduledAt: LATER_TIME }),
      'email.rescheduled': email('scheduled', { scheduledAt: LATER_TIME }),
      'email.sent': email('sent'),
      'email.delivery_delayed': email('delivery_delayed', {
        ...RECIPIENT_DATA,
        error: "The recipient's server deferred it: 451 4.7.1 Please try again later",
      }),
      'email.delivered': email('delivered', RECIPIENT_DATA),
      'email.opened': email('opened', RECIPIENT_DATA),
      'email.clicked': email('clicked', { ...RECIPIENT_DATA, click: { link: 'https://example.com/orders/4711' } }),
      'email.bounced': email('bounced', {
        ...RECIPIENT_DATA,
        error: "The recipient's server refused it: 550 5.1.1 The email account does not exist",
        bounceReason: 'mailbox_not_found',
      }),
      'email.complained': email('complained', RECIPIENT_DATA),
      'email.unsubscribed': email('delivered', RECIPIENT_DATA),
      'email.suppressed': email('suppressed'),
      'email.canceled': email('canceled'),
      'email.rejected': email('rejected', { error: 'The provider refused it: the sender address is not allowed' }),
      'email.failed': email('failed', { error: 'The provider could not be reached in 10 attempts' }),
    },
  },
  batch: {
    operationId: 'onBatchEvent',
    summary: 'All emails of a batch were sent or have ended',
    data: {
      'batch.completed': {
        batchId: 'bt_01kajc9a4kf7m2tq8w5yzr3b6d',
        total: 2,
        status: 'completed',
        counts: { sent: 1, delivered: 1 },
        completedAt: EXAMPLE_TIME,
      },
    },
  },
  chatapp: {
    operationId: 'onChatMessageEvent',
    summary: 'Chat-app message event',
    data: {
      'chatapp.queued': chat('queued'),
      'chatapp.scheduled': chat('scheduled', { scheduledAt: LATER_TIME }),
      'chatapp.rescheduled': chat('scheduled', { scheduledAt: LATER_TIME }),
      'chatapp.sent': chat('sent'),
      'chatapp.delivered': chat('delivered'),
      'chatapp.read': chat('read'),
      'chatapp.failed': chat('failed', { error: 'Message undeliverable', errorCode: '131026' }),
      'chatapp.canceled': chat('canceled'),
    },
  },
  chatappReceived: {
    operationId: 'onChatMessageReceived',
    summary: 'A chat-app user has written to a connected number',
    data: {
      'chatapp.received': {
        messageId: 'in_01kajce1x8m4n6p0r2t5v7w9yz',
        from: '+14165550123',
        to: '+12025550142',
        userId: 'CA.13491208655302741918',
        name: 'Ada',
        type: 'text',
        sentAt: EXAMPLE_TIME,
        text: 'Where is my order?',
      },
    },
  },
  smsReceived: {
    operationId: 'onSmsReceived',
    summary: 'A recipient of SMS has answered',
    data: { 'sms.received': { from: '+14165550123', to: '+12025550142', text: 'Where is my order?' } },
  },
  sms: {
    operationId: 'onSmsEvent',
    summary: 'SMS event',
    data: {
      'sms.queued': sms('queued'),
      'sms.scheduled': sms('scheduled', { scheduledAt: LATER_TIME }),
      'sms.rescheduled': sms('scheduled', { scheduledAt: LATER_TIME }),
      'sms.sent': sms('sent'),
      'sms.delivered': sms('delivered'),
      'sms.undelivered': sms('undelivered', {
        error: 'Twilio could not deliver it: the phone is switched off or out of reach (error 30003).',
        errorCode: '30003',
      }),
      'sms.failed': sms('failed', { error: 'The number is not a mobile number', errorCode: '30006' }),
      'sms.canceled': sms('canceled'),
      'sms.suppressed': sms('suppressed'),
    },
  },
  domain: {
    operationId: 'onDomainEvent',
    summary: 'Domain event',
    data: {
      'domain.created': domain('pending'),
      'domain.verified': domain('verified'),
      'domain.failed': domain('failed'),
      'domain.deleted': domain('verified'),
    },
  },
  suppression: {
    operationId: 'onSuppressionEvent',
    summary: 'An address was added to the suppression list, or removed from it',
    data: { 'suppression.added': suppression, 'suppression.removed': suppression },
  },
  webhook: {
    operationId: 'onWebhookEvent',
    summary: 'An endpoint was disabled, or a test was requested',
    data: {
      'webhook.disabled': {
        webhookId: 'wh_01kajcc2m3r8v5x7y1b4d6f9gh',
        url: 'https://example.com/webhooks/sendwright',
        reason: 'all attempts of 5 days have failed',
        failingSince: '2026-02-24T09:12:40.118Z',
      },
      'webhook.test': { webhookId: 'wh_01kajcc2m3r8v5x7y1b4d6f9gh' },
    },
  },
};

/** Returns an example payload for each event type. */
function examplesOf({ data }: EventDoc) {
  return Object.fromEntries(
    Object.entries(data).map(([type, fields]) => {
      const value = { id: 'evt_01kajcd5p9t4v6w8x0y2z5b7cd', type, created_at: EXAMPLE_TIME, data: fields };
      return [type, { value }];
    }),
  );
}

const header = (name: string, description: string) => ({
  name,
  in: 'header' as const,
  required: true,
  description,
  schema: { type: 'string' as const },
});

/** Headers of Standard Webhooks 1.0.0. The same values are also sent with the prefix `service-`. */
const HEADERS = [
  header('webhook-id', 'The id of the event, which is the same for every attempt'),
  header('webhook-timestamp', 'The time of this attempt in Unix seconds'),
  header(
    'webhook-signature',
    '`v1,` and the signature in base64; two of them, separated by a space, while a secret is being rotated',
  ),
];

/** Describes the webhook requests to customers' endpoints, for the API description. */
export function describeEvents() {
  return Object.fromEntries(
    Object.entries(EVENTS).map(([name, schema]) => {
      const doc = DOCS[name as keyof typeof EVENTS];
      const { operationId, summary } = doc;
      const post = {
        tags: ['Webhooks'],
        operationId,
        summary,
        security: [],
        parameters: HEADERS,
        requestBody: { required: true, content: { 'application/json': { schema, examples: examplesOf(doc) } } },
        responses: { '2XX': { description: 'The event was received. After any other status it is sent again.' } },
      };
      return [name, { post }];
    }),
  );
}
