/** Names of what the busy tenant has stored. */
export interface Stored {
  readonly emailId: string;
  readonly batchId: string;
  readonly from: string;
  readonly tagName: string;
}

export interface Call {
  readonly path: string;
  readonly body?: unknown;
}

/** Ids of the rows that `fillTenant` stores. */
export const ENDPOINT = 'wh_bench';
export const DELIVERY = 'whd_bench_1';
export const KEY = 'key_bench_1';
export const DOMAIN = 'dm_bench_1';
export const NUMBER = '+447900000001';
export const SMS = 'sms_bench_1';
export const CHAT = 'wa_bench_1';

const LATER = '2030-01-01T00:00:00Z';
let count = 0;

const get = (path: string) => (): Call => ({ path });
const post = (path: string, body?: object) => (): Call => ({ path, ...(body && { body }) });

function mail({ from, tagName }: Stored) {
  const tags = [{ name: tagName, value: `new${++count % 1_000}` }];
  return { from, to: `person${count}@example.net`, subject: 'Hello', text: 'Hi.', tags };
}

/**
 * A call of each route of the API's table, by method and path. `test/bench/tenants.test.ts` compares them with the table. Calls of
 * lists have the filters that cost most.
 */
export const CALLS: Readonly<Record<string, (stored: Stored) => Call>> = {
  'POST /v1/emails': (stored) => ({ path: '/v1/emails', body: mail(stored) }),
  'GET /v1/emails': get('/v1/emails?limit=100&status=complained&subject=digest%20weekly&to=%40mail.example'),
  'GET /v1/emails/tags': get('/v1/emails/tags'),
  'POST /v1/emails/batch': (stored) => ({
    path: '/v1/emails/batch',
    body: { emails: Array.from({ length: 100 }, () => mail(stored)) },
  }),
  'GET /v1/emails/batch': get('/v1/emails/batch?limit=100'),
  'GET /v1/emails/batch/:id': ({ batchId }) => ({ path: `/v1/emails/batch/${batchId}` }),
  'POST /v1/emails/batch/:id/cancel': ({ batchId }) => ({ path: `/v1/emails/batch/${batchId}/cancel` }),
  'GET /v1/emails/:id': ({ emailId }) => ({ path: `/v1/emails/${emailId}` }),
  'PATCH /v1/emails/:id': ({ emailId }) => ({ path: `/v1/emails/${emailId}`, body: { scheduled_at: LATER } }),
  'POST /v1/emails/:id/cancel': ({ emailId }) => ({ path: `/v1/emails/${emailId}/cancel` }),
  'GET /v1/emails/:id/content': ({ emailId }) => ({ path: `/v1/emails/${emailId}/content` }),
  'DELETE /v1/emails/:id/content': ({ emailId }) => ({ path: `/v1/emails/${emailId}/content` }),
  'GET /v1/emails/:id/attachments': ({ emailId }) => ({ path: `/v1/emails/${emailId}/attachments` }),
  'GET /v1/emails/:id/attachments/:attachmentId': ({ emailId }) => ({
    path: `/v1/emails/${emailId}/attachments/att_1`,
  }),
  'GET /v1/emails/:id/attachments/:attachmentId/download': get('/v1/emails/em_1/attachments/att_1/download'),

  'POST /v1/chatapp': post('/v1/chatapp', { to: '+14165550123', text: 'Hi.' }),
  'GET /v1/chatapp': get('/v1/chatapp?limit=100'),
  'POST /v1/chatapp/numbers': post('/v1/chatapp/numbers', { number: NUMBER, provider: 'twilio', auth_token: 'token' }),
  'GET /v1/chatapp/numbers': get('/v1/chatapp/numbers'),
  'GET /v1/chatapp/numbers/:id': get('/v1/chatapp/numbers/num_1'),
  'DELETE /v1/chatapp/numbers/:id': get('/v1/chatapp/numbers/num_1'),
  'GET /v1/chatapp/received/:id/download': get('/v1/chatapp/received/in_1/download'),
  'GET /v1/chatapp/:id': get(`/v1/chatapp/${CHAT}`),
  'PATCH /v1/chatapp/:id': post(`/v1/chatapp/${CHAT}`, { scheduled_at: LATER }),
  'POST /v1/chatapp/:id/cancel': post(`/v1/chatapp/${CHAT}/cancel`),
  'DELETE /v1/chatapp/:id/content': get(`/v1/chatapp/${CHAT}/content`),

  'POST /v1/sms': post('/v1/sms', { to: '+14165550123', text: 'Hi.' }),
  'GET /v1/sms': get('/v1/sms?limit=100'),
  'GET /v1/sms/senders': get('/v1/sms/senders'),
  'GET /v1/sms/:id': get(`/v1/sms/${SMS}`),
  'PATCH /v1/sms/:id': post(`/v1/sms/${SMS}`, { scheduled_at: LATER }),
  'POST /v1/sms/:id/cancel': post(`/v1/sms/${SMS}/cancel`),
  'DELETE /v1/sms/:id/content': get(`/v1/sms/${SMS}/content`),

  'GET /v1/stats': get(`/v1/stats?by=tag:k&step=hour&from=${new Date(Date.now() - 30 * 86_400_000).toISOString()}`),

  'POST /v1/domains': () => ({ path: '/v1/domains', body: { name: `d${++count}.example.com` } }),
  'GET /v1/domains': get('/v1/domains?limit=100'),
  'GET /v1/domains/:id': get(`/v1/domains/${DOMAIN}`),
  'PATCH /v1/domains/:id': post(`/v1/domains/${DOMAIN}`, { open_tracking: true }),
  'POST /v1/domains/:id/verify': post(`/v1/domains/${DOMAIN}/verify`),
  'DELETE /v1/domains/:id': get('/v1/domains/dm_absent'),

  'POST /v1/suppressions': () => ({
    path: '/v1/suppressions',
    body: { emails: Array.from({ length: 100 }, () => `s${++count}@example.org`) },
  }),
  'GET /v1/suppressions': get('/v1/suppressions?limit=100'),
  'GET /v1/suppressions/:idOrEmail': get('/v1/suppressions/s1%40example.net'),
  'DELETE /v1/suppressions/:idOrEmail': get('/v1/suppressions/s1%40example.net'),

  'POST /v1/erasures': post('/v1/erasures', { email: 'user2@mail.example' }),

  'POST /v1/webhooks': post('/v1/webhooks', { url: 'https://example.com/hook' }),
  'GET /v1/webhooks': get('/v1/webhooks?limit=100'),
  'GET /v1/webhooks/:id': get(`/v1/webhooks/${ENDPOINT}`),
  'PATCH /v1/webhooks/:id': post(`/v1/webhooks/${ENDPOINT}`, { description: 'changed' }),
  'DELETE /v1/webhooks/:id': get('/v1/webhooks/wh_absent'),
  'POST /v1/webhooks/:id/rotate-secret': post(`/v1/webhooks/${ENDPOINT}/rotate-secret`),
  'POST /v1/webhooks/:id/test': post(`/v1/webhooks/${ENDPOINT}/test`),
  'POST /v1/webhooks/:id/replay': post(`/v1/webhooks/${ENDPOINT}/replay`, { since: '2020-01-01T00:00:00Z' }),
  'GET /v1/webhooks/:id/deliveries': get(`/v1/webhooks/${ENDPOINT}/deliveries?limit=100&status=failed`),
  'GET /v1/webhooks/:id/deliveries/:deliveryId': get(`/v1/webhooks/${ENDPOINT}/deliveries/${DELIVERY}`),
  'POST /v1/webhooks/:id/deliveries/:deliveryId/replay': post(`/v1/webhooks/${ENDPOINT}/deliveries/${DELIVERY}/replay`),

  'POST /v1/keys': post('/v1/keys', { preset: 'read_only' }),
  'GET /v1/keys': get('/v1/keys?limit=100'),
  'GET /v1/keys/:id': get(`/v1/keys/${KEY}`),
  'DELETE /v1/keys/:id': get('/v1/keys/key_absent'),

  'GET /v1/requests': get('/v1/requests?limit=100&status=500'),

  'GET /unsubscribe/:token': get('/unsubscribe/token'),
  'POST /unsubscribe/:token': post('/unsubscribe/token'),
  'GET /t/o/:token': get('/t/o/token'),
  'GET /t/c/:token': get('/t/c/token'),
  'POST /callbacks/postmark': post('/callbacks/postmark', {}),
  'POST /callbacks/twilio': post('/callbacks/twilio', {}),
  'POST /callbacks/twilio/inbound': post('/callbacks/twilio/inbound', {}),
  'GET /callbacks/meta': get('/callbacks/meta'),
  'POST /callbacks/meta': post('/callbacks/meta', {}),
  'GET /': get('/'),
  'GET /healthz': get('/healthz'),
  'GET /readyz': get('/readyz'),
  'GET /metrics': get('/metrics'),
  'GET /openapi.json': get('/openapi.json'),
};
