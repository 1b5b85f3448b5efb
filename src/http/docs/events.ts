import { EVENTS } from '../schemas/events.ts';

const AT = '2026-03-01T09:30:02.431Z';
const EMAIL_ID = 'em_01kajc8wz6h3xkq3m1x8e6v5tn';

/** The name of a webhook for generated clients, its summary, and an example of a type and its data. */
const doc = (operationId: string, summary: string, type: string, data: object) => ({
  operationId,
  summary,
  example: { id: 'evt_01kajcd5p9t4v6w8x0y2z5b7cd', type, created_at: AT, data },
});

const DOCS: Readonly<Record<keyof typeof EVENTS, ReturnType<typeof doc>>> = {
  email: doc('onEmailEvent', 'Email event', 'email.bounced', {
    emailId: EMAIL_ID,
    from: 'Example <hello@example.com>',
    to: ['Ada <ada@example.net>'],
    subject: 'Your receipt',
    tags: [{ name: 'kind', value: 'receipt' }],
    status: 'bounced',
    recipient: 'ada@example.net',
    error: "The recipient's server refused it: 550 5.1.1 The email account does not exist",
    bounceReason: 'mailbox_not_found',
  }),
  batch: doc('onBatchEvent', 'All emails of a batch were sent or have ended', 'batch.completed', {
    batchId: 'bt_01kajc9a4kf7m2tq8w5yzr3b6d',
    total: 2,
    status: 'completed',
    counts: { sent: 1, delivered: 1 },
    completedAt: AT,
  }),
  chatapp: doc('onChatMessageEvent', 'Chat-app message event', 'chatapp.failed', {
    messageId: 'wa_01kajce1x8m4n6p0r2t5v7w9yz',
    from: '+12025550142',
    to: '+14165550123',
    country: 'CA',
    type: 'text',
    status: 'failed',
    error: 'Message undeliverable',
    errorCode: '131026',
  }),
  chatappReceived: doc(
    'onChatMessageReceived',
    'A chat-app user has written to a connected number',
    'chatapp.received',
    {
      messageId: 'in_01kajce1x8m4n6p0r2t5v7w9yz',
      from: '+14165550123',
      to: '+12025550142',
      userId: 'CA.13491208655302741918',
      name: 'Ada',
      type: 'text',
      sentAt: AT,
      text: 'Where is my order?',
    },
  ),
  smsReceived: doc('onSmsReceived', 'A recipient of SMS has answered', 'sms.received', {
    from: '+14165550123',
    to: '+12025550142',
    text: 'Where is my order?',
  }),
  sms: doc('onSmsEvent', 'SMS event', 'sms.undelivered', {
    messageId: 'sms_01kajce1x8m4n6p0r2t5v7w9yz',
    from: '+12025550142',
    to: '+14165550123',
    country: 'CA',
    segments: 1,
    status: 'undelivered',
    error: 'Twilio could not deliver it: the phone is switched off or out of reach (error 30003).',
    errorCode: '30003',
  }),
  domain: doc('onDomainEvent', 'Domain event', 'domain.verified', {
    domainId: 'dm_01kajcf3g5h7j9k1m3n5p7q9rs',
    name: 'mail.example.com',
    status: 'verified',
  }),
  suppression: doc(
    'onSuppressionEvent',
    'An address was added to the suppression list, or removed from it',
    'suppression.added',
    {
      suppressionId: 'sup_01kajc9f2bq0w8e5r7t1y3u6ip',
      email: 'ada@example.net',
      origin: 'bounce',
      bounceReason: 'mailbox_not_found',
      emailId: EMAIL_ID,
    },
  ),
  webhook: doc('onWebhookEvent', 'An endpoint was disabled, or a test was requested', 'webhook.disabled', {
    webhookId: 'wh_01kajcc2m3r8v5x7y1b4d6f9gh',
    url: 'https://example.com/webhooks/sendwright',
    reason: 'every try of 5 days has failed',
    failingSince: '2026-02-24T09:12:40.118Z',
  }),
};

const header = (name: string, description: string) => ({
  name,
  in: 'header' as const,
  required: true,
  description,
  schema: { type: 'string' as const },
});

/** Headers of Standard Webhooks 1.0.0. The same values are also sent with the prefix `service-`. */
const HEADERS = [
  header('webhook-id', 'The id of the event, the same for every attempt'),
  header('webhook-timestamp', 'When this attempt was made, in Unix seconds'),
  header(
    'webhook-signature',
    '`v1,` and the signature in base64; two of them, separated by a space, while a secret is being rotated',
  ),
];

/** Describes the requests that are posted to customers' endpoints, for the API description. */
export function describeEvents() {
  return Object.fromEntries(
    Object.entries(EVENTS).map(([name, schema]) => {
      const { operationId, summary, example } = DOCS[name as keyof typeof EVENTS];
      const post = {
        tags: ['Webhooks'],
        operationId,
        summary,
        security: [],
        parameters: HEADERS,
        requestBody: { required: true, content: { 'application/json': { schema, example } } },
        responses: { '2XX': { description: 'Received. After any other status the event is sent again.' } },
      };
      return [name, { post }];
    }),
  );
}
