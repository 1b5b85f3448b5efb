import { domain, wholeDomain } from './domain-example.ts';
import { statistics } from './statistics-example.ts';

/** An example request of an operation and its response. Tests send the request and compare the shape of the response. */
export interface Example {
  readonly request?: unknown;
  readonly answer: unknown;
}

const ID = 'em_01kajc8wz6h3xkq3m1x8e6v5tn';
const BATCH_ID = 'bt_01kajc9a4kf7m2tq8w5yzr3b6d';
const AT = '2026-03-01T09:30:00.000Z';
const SENT_AT = '2026-03-01T09:30:01.118Z';
const DELIVERED_AT = '2026-03-01T09:30:02.431Z';

/** An example of a list with one page. */
const pageOf = (name: string, item: unknown): Example => ({
  answer: { [name]: [item], has_more: false, next_cursor: null },
});

/** The timeline of a delivered message. */
const timeline = (channel: string) => [
  { type: `${channel}.queued`, created_at: AT },
  { type: `${channel}.sent`, created_at: SENT_AT },
  { type: `${channel}.delivered`, created_at: DELIVERED_AT },
];

/** Examples of rescheduling and canceling a message. */
const scheduleChanges = (path: string, id: string): Readonly<Record<string, Example>> => ({
  [`PATCH ${path}`]: {
    request: { scheduled_at: '2026-03-03T09:00:00+01:00' },
    answer: { id, status: 'scheduled', scheduled_at: '2026-03-03T08:00:00.000Z' },
  },
  [`POST ${path}/cancel`]: { answer: { id, status: 'canceled' } },
});

const email = {
  from: 'Example <hello@example.com>',
  to: ['Ada <ada@example.net>'],
  subject: 'Your receipt',
  html: '<p>Thank you for your order.</p>',
  text: 'Thank you for your order.',
  tags: [{ name: 'kind', value: 'receipt' }],
};

const summary = {
  id: ID,
  batch_id: null,
  from: email.from,
  to: email.to,
  subject: email.subject,
  marketing: false,
  tags: email.tags,
  status: 'delivered',
  error: null,
  bounce_reason: null,
  created_at: AT,
  scheduled_at: null,
  last_event_at: DELIVERED_AT,
};

const file = {
  id: 'att_01kajc8wz8c5n9v2e7jhq4r0xg',
  filename: 'receipt.txt',
  content_type: 'text/plain',
  size: 5,
  content_id: null,
  inline: false,
};
const fileWithLink = {
  ...file,
  expires_at: '2026-03-31T09:30:01.118Z',
  download_url: `https://mail.example.com/v1/emails/${ID}/attachments/${file.id}/download?expires=1772361000&signature=Zm9v`,
};

const batch = {
  id: BATCH_ID,
  total: 2,
  status: 'processing',
  created_at: AT,
  completed_at: null,
  counts: { scheduled: 1, delivered: 1 },
};

const suppression = {
  id: 'sup_01kajc9f2bq0w8e5r7t1y3u6ip',
  email: 'ada@example.net',
  origin: 'bounce',
  reason: 'mailbox_not_found',
  email_id: ID,
  created_at: AT,
};

const endpoint = {
  id: 'wh_01kajcc2m3r8v5x7y1b4d6f9gh',
  url: 'https://example.com/webhooks/sendwright',
  description: 'Order system',
  events: ['email.delivered', 'email.bounced'],
  status: 'enabled',
  disabled_reason: null,
  disabled_at: null,
  failing_since: null,
  created_at: AT,
};
const endpointWithSecret = { ...endpoint, secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw7hYqCJb3p0E=' };

const delivery = {
  id: 'whd_01kajcd5p97c1f2a3b4d5e6f70',
  event_id: 'evt_01kajcd5p9t4v6w8x0y2z5b7cd',
  type: 'email.delivered',
  status: 'succeeded',
  created_at: DELIVERED_AT,
  next_attempt_at: null,
};
const pendingDelivery = { ...delivery, status: 'pending', next_attempt_at: delivery.created_at };

const acceptedSms = {
  id: 'sms_01kajce1x8m4n6p0r2t5v7w9yz',
  status: 'queued',
  from: '+12025550142',
  to: '+14165550123',
  country: 'CA',
  segments: 1,
  encoding: 'gsm7',
  created_at: AT,
  scheduled_at: null,
};

const sms = {
  ...acceptedSms,
  status: 'delivered',
  tags: [{ name: 'kind', value: 'code' }],
  error: null,
  last_event_at: DELIVERED_AT,
};

const message = {
  id: 'wa_01kajce1x8m4n6p0r2t5v7w9yz',
  status: 'delivered',
  type: 'text',
  from: '+12025550142',
  to: '+14165550123',
  country: 'CA',
  error: null,
  error_code: null,
  created_at: AT,
  last_event_at: DELIVERED_AT,
};

const number = {
  id: 'num_01kajce5q2w4e6r8t0y1u3i5op',
  number: '+12025550143',
  provider: 'twilio',
  phone_number_id: null,
  account_sid: `AC${'0'.repeat(32)}`,
  own_token: true,
  created_at: AT,
};
const templates = [{ name: 'receipt', language: 'en_US', content_sid: `HX${'0'.repeat(32)}`, variables: ['1', '2'] }];

const key = {
  id: 'key_01kajcg3t5z7b9d1f3h5k7m9pq',
  name: 'Shop, production',
  preset: 'sending_access',
  domain_ids: null,
  expires_at: null,
  allowed_ips: ['203.0.113.7', '2001:db8::/32'],
  last_used_at: null,
  created_at: AT,
};
const usedKey = { ...key, last_used_at: DELIVERED_AT };

/** The examples in the API description, by method and path. */
export const EXAMPLES: Readonly<Record<string, Example>> = {
  'POST /v1/emails': {
    request: {
      ...email,
      headers: { 'X-Order': '4711' },
      attachments: [{ filename: 'receipt.txt', content: 'SGVsbG8=' }],
    },
    answer: { id: ID, status: 'queued', created_at: AT, scheduled_at: null },
  },
  'GET /v1/emails': {
    answer: {
      emails: [summary],
      has_more: true,
      next_cursor: 'h6Kq0sQYw1nB2tVx9LmZ3lsiMjAyNi0wMy0wMVQwOTozMDowMC4wMDBaIl0',
    },
  },
  'GET /v1/emails/tags': {
    answer: {
      tags: [
        { name: 'kind', value: 'receipt', count: 17 },
        { name: 'kind', value: 'welcome', count: 4 },
      ],
    },
  },
  'GET /v1/stats': { answer: statistics },
  'GET /v1/emails/{id}': {
    answer: {
      ...summary,
      cc: null,
      bcc: null,
      reply_to: null,
      headers: { 'X-Order': '4711' },
      events: timeline('email'),
      attachments: [file],
    },
  },
  ...scheduleChanges('/v1/emails/{id}', ID),
  'GET /v1/emails/{id}/attachments': { answer: { attachments: [fileWithLink] } },
  'GET /v1/emails/{id}/attachments/{attachmentId}': { answer: fileWithLink },
  'POST /v1/emails/batch': {
    request: {
      emails: [
        email,
        { ...email, to: 'grace@example.net', subject: 'How was it?', scheduled_at: '2026-03-03T09:00:00+01:00' },
      ],
    },
    answer: { id: BATCH_ID, total: 2, status: 'queued', created_at: AT },
  },
  'GET /v1/emails/batch': pageOf('batches', batch),
  'GET /v1/emails/batch/{id}': { answer: batch },
  'POST /v1/emails/batch/{id}/cancel': { answer: { id: BATCH_ID, status: 'completed', canceled: 1 } },
  'POST /v1/chatapp': {
    request: {
      to: '+1 (416) 555-0123',
      text: 'Your order is on its way: https://example.com/o/4711',
      preview_url: true,
    },
    answer: { id: message.id, status: 'queued', type: 'text', from: message.from, country: 'CA', created_at: AT },
  },
  'GET /v1/chatapp': pageOf('messages', message),
  'GET /v1/chatapp/{id}': {
    answer: {
      ...message,
      text: 'Your order is on its way: https://example.com/o/4711',
      preview_url: true,
      template: null,
      image: null,
      document: null,
      events: timeline('chatapp'),
    },
  },
  ...scheduleChanges('/v1/chatapp/{id}', message.id),
  'POST /v1/chatapp/numbers': {
    request: {
      number: number.number,
      provider: 'twilio',
      account_sid: number.account_sid,
      auth_token: 'the-token-of-the-account',
      templates,
    },
    answer: { ...number, templates },
  },
  'GET /v1/chatapp/numbers': pageOf('numbers', number),
  'GET /v1/chatapp/numbers/{id}': { answer: { ...number, templates } },
  'POST /v1/sms': {
    request: { to: '+1 (416) 555-0123', text: 'Your code is 123456.', tags: sms.tags },
    answer: acceptedSms,
  },
  'GET /v1/sms': pageOf('messages', sms),
  'GET /v1/sms/{id}': {
    answer: {
      ...sms,
      text: 'Your code is 123456.',
      events: timeline('sms'),
    },
  },
  ...scheduleChanges('/v1/sms/{id}', sms.id),
  'GET /v1/sms/senders': pageOf('senders', {
    id: 'snd_01kajce5q2w4e6r8t0y1u3i5op',
    number: '+12025550142',
    messaging_service_sid: null,
    countries: ['CA', 'US'],
    created_at: AT,
  }),
  'GET /v1/emails/{id}/content': {
    answer: { subject: email.subject, html: email.html, text: email.text, headers: { 'X-Order': '4711' } },
  },
  'POST /v1/domains': { request: { name: domain.name }, answer: wholeDomain },
  'GET /v1/domains': pageOf('domains', domain),
  'GET /v1/domains/{id}': { answer: wholeDomain },
  'PATCH /v1/domains/{id}': {
    request: { open_tracking: true, click_tracking: true },
    answer: { ...wholeDomain, open_tracking: true, click_tracking: true },
  },
  'POST /v1/domains/{id}/verify': { answer: wholeDomain },
  'POST /v1/suppressions': {
    request: { email: suppression.email },
    answer: { ...suppression, origin: 'manual', reason: null, email_id: null },
  },
  'GET /v1/suppressions': pageOf('suppressions', suppression),
  'GET /v1/suppressions/{idOrEmail}': { answer: suppression },
  'POST /v1/erasures': {
    request: { email: suppression.email },
    answer: {
      report: {
        emails: 3,
        messages: 0,
        contents: 2,
        files: 1,
        events: 9,
        recipients: 0,
        attempts: 0,
        webhook_events: 4,
        audit_entries: 0,
        provider_callbacks: 0,
        suppressions: 1,
        received: 0,
        contacts: 0,
      },
      has_more: false,
      next_cursor: null,
    },
  },
  'POST /v1/webhooks': {
    request: { url: endpoint.url, events: endpoint.events, description: endpoint.description },
    answer: endpointWithSecret,
  },
  'GET /v1/webhooks': pageOf('webhooks', endpoint),
  'GET /v1/webhooks/{id}': { answer: endpoint },
  'PATCH /v1/webhooks/{id}': { request: { events: endpoint.events, status: 'enabled' }, answer: endpoint },
  'POST /v1/webhooks/{id}/rotate-secret': { answer: endpointWithSecret },
  'POST /v1/webhooks/{id}/test': {
    answer: { ...pendingDelivery, type: 'webhook.test' },
  },
  'POST /v1/webhooks/{id}/replay': {
    request: { since: '2026-03-01T09:00:00Z', until: '2026-03-01T10:00:00Z', status: 'failed' },
    answer: { replayed: 17 },
  },
  'GET /v1/webhooks/{id}/deliveries': pageOf('deliveries', delivery),
  'GET /v1/webhooks/{id}/deliveries/{deliveryId}': {
    answer: {
      ...delivery,
      payload: {
        id: delivery.event_id,
        type: delivery.type,
        created_at: delivery.created_at,
        data: {
          emailId: ID,
          from: email.from,
          to: email.to,
          subject: email.subject,
          tags: email.tags,
          status: 'delivered',
          recipient: 'ada@example.net',
        },
      },
      attempts: [{ at: '2026-03-01T09:30:02.518Z', status_code: 200, duration_ms: 87, response: 'ok', error: null }],
    },
  },
  'POST /v1/webhooks/{id}/deliveries/{deliveryId}/replay': { answer: pendingDelivery },
  'POST /v1/keys': {
    request: { preset: key.preset, name: key.name, allowed_ips: key.allowed_ips },
    answer: { ...key, api_key: `sw_live_01kajcg3t5z7b9d1f3h5k7m9pq_${'0'.repeat(64)}` },
  },
  'GET /v1/keys': pageOf('keys', usedKey),
  'GET /v1/keys/{id}': { answer: usedKey },
  'GET /v1/requests': pageOf('requests', {
    id: 'req_01kajc8wz6h3xkq3m1x8e6v5tn',
    method: 'POST',
    path: '/v1/emails',
    status: 422,
    error_code: 'validation_error',
    key_id: usedKey.id,
    duration_ms: 3,
    created_at: AT,
  }),
  'GET /healthz': { answer: { status: 'ok' } },
  'GET /readyz': { answer: { status: 'ok' } },
};
