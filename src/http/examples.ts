/** A request of an operation, and the answer to it. Tests send the one and check the form of the other. */
export interface Example {
  readonly request?: unknown;
  readonly answer: unknown;
}

const ID = 'em_01kajc8wz6h3xkq3m1x8e6v5tn';
const BATCH_ID = 'bt_01kajc9a4kf7m2tq8w5yzr3b6d';
const AT = '2026-03-01T09:30:00.000Z';
const SCHEDULED_AT = '2026-03-02T08:00:00.000Z';

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
  last_event_at: '2026-03-01T09:30:02.431Z',
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

/** By operation, as the API description writes them. */
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
  'GET /v1/emails/{id}': {
    answer: {
      ...summary,
      cc: null,
      bcc: null,
      reply_to: null,
      headers: { 'X-Order': '4711' },
      events: [
        { type: 'email.queued', created_at: AT },
        { type: 'email.sent', created_at: '2026-03-01T09:30:01.118Z' },
        { type: 'email.delivered', created_at: '2026-03-01T09:30:02.431Z' },
      ],
      attachments: [file],
    },
  },
  'PATCH /v1/emails/{id}': {
    request: { scheduled_at: '2026-03-02T09:00:00+01:00' },
    answer: { id: ID, status: 'scheduled', scheduled_at: SCHEDULED_AT },
  },
  'POST /v1/emails/{id}/cancel': { answer: { id: ID, status: 'canceled' } },
  'GET /v1/emails/{id}/attachments': { answer: { attachments: [fileWithLink] } },
  'GET /v1/emails/{id}/attachments/{attachmentId}': { answer: fileWithLink },
  'POST /v1/emails/batch': {
    request: {
      emails: [
        email,
        { ...email, to: 'grace@example.net', subject: 'How was it?', scheduled_at: '2026-03-02T09:00:00+01:00' },
      ],
    },
    answer: { id: BATCH_ID, total: 2, status: 'queued', created_at: AT },
  },
  'GET /v1/emails/batch': { answer: { batches: [batch], has_more: false, next_cursor: null } },
  'GET /v1/emails/batch/{id}': { answer: batch },
  'POST /v1/emails/batch/{id}/cancel': { answer: { id: BATCH_ID, status: 'completed', canceled: 1 } },
  'GET /healthz': { answer: { status: 'ok' } },
  'GET /readyz': { answer: { status: 'ok' } },
};
