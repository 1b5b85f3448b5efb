import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ROUTES } from '../../src/http/app.ts';
import { PRESETS, type Preset } from '../../src/store/accounts/keys.ts';
import { assertRefused, bodyOf, inFuture, useService } from './service.ts';

const service = await useService();
const ours = await service.organization();
const keys = new Map<Preset, string>();
for (const preset of PRESETS) keys.set(preset, await ours.addKey(preset));

/** The routes that sending_access allows. */
const SENDING = new Set([
  'POST /v1/emails',
  'POST /v1/emails/batch',
  'POST /v1/emails/batch/:id/cancel',
  'PATCH /v1/emails/:id',
  'POST /v1/emails/:id/cancel',
  'POST /v1/chatapp',
  'PATCH /v1/chatapp/:id',
  'POST /v1/chatapp/:id/cancel',
  'POST /v1/sms',
  'PATCH /v1/sms/:id',
  'POST /v1/sms/:id/cancel',
]);
/** Routes that need no key. */
const PUBLIC = /^(?:GET|POST) \/(?:$|unsubscribe|t\/[oc]\/|callbacks|healthz|readyz|metrics|openapi\.json)|\/download$/;

function isAllowed(preset: Preset, operation: string): boolean {
  if (preset === 'full_access') return true;
  if (preset === 'sending_access') return SENDING.has(operation);
  return operation.startsWith('GET ') && !/^GET \/v1\/(?:keys|requests)/.test(operation);
}

describe('the permissions of keys on every route', () => {
  it('sending_access: POST of emails, batches and messages, PATCH and cancel; read_only: every GET but keys and requests', async () => {
    for (const [method, url, scope] of ROUTES) {
      const operation = `${String(method)} ${url}`;
      const path = url.replaceAll(/:\w+/g, 'x');
      assert.equal(scope === 'public', PUBLIC.test(operation), operation);
      if (scope === 'public') continue;
      assert.equal((await service.call(String(method), path)).status, 401, operation);
      for (const preset of PRESETS) {
        const answer = await service.call(String(method), path, { key: keys.get(preset) });
        if (isAllowed(preset, operation))
          assert.ok(![401, 403].includes(answer.status), `${preset}: ${operation} ${answer.text}`);
        else assertRefused(answer, 403, 'insufficient_scope', undefined, `this API key has ${preset}`);
      }
    }
    const operations = new Set(ROUTES.map(([method, url]) => `${String(method)} ${url}`));
    for (const operation of SENDING) assert.ok(operations.has(operation), operation);
  });

  it('a key for certain domains sends no chat-app messages', async () => {
    await ours.addDomain('only.example');
    for (const preset of ['full_access', 'sending_access'] as const) {
      const key = await ours.addKey(preset, ['only.example']);
      const answer = await service.call('POST', '/v1/chatapp', { key, json: { to: '+14165550123', text: 'Hi.' } });
      assertRefused(answer, 403, 'insufficient_scope', undefined, 'this API key may send from certain domains only');
    }
  });

  it('a key for certain domains manages nothing of the whole organization, and no other domain', async () => {
    const [own, other] = [await ours.addDomain('own.example'), await ours.addDomain('others.example')];
    const key = await ours.addKey('full_access', ['own.example']);
    const rows = ROUTES.filter(([, , scope]) => scope === 'manage' || scope === 'manage-lasting');
    assert.ok(rows.length > 10, String(rows.length));
    for (const [method, url] of rows) {
      const answer = await service.call(String(method), url.replaceAll(/:\w+/g, 'x'), { key });
      assertRefused(answer, 403, 'insufficient_scope', undefined, 'this API key is for certain domains only');
    }
    const bounded = ROUTES.filter(([, , scope]) => scope === 'manage-bounded').map(
      ([method, url]) => `${method} ${url}`,
    );
    assert.deepEqual(bounded, [
      ...['PATCH /v1/domains/:id', 'POST /v1/domains/:id/verify', 'DELETE /v1/domains/:id', 'POST /v1/keys'],
      ...['GET /v1/keys', 'GET /v1/keys/:id', 'DELETE /v1/keys/:id'],
    ]);
    for (const [method, path, json] of [
      ['PATCH', `/v1/domains/${other}`, { open_tracking: false }],
      ['POST', `/v1/domains/${other}/verify`, undefined],
      ['DELETE', `/v1/domains/${other}`, undefined],
    ] as const) {
      assertRefused(await service.call(method, path, { key, json }), 403, 'insufficient_scope');
    }
    assert.equal((await ours.call('GET', `/v1/domains/${other}`)).status, 200, 'it is still there');
    assert.equal((await service.call('DELETE', `/v1/domains/${own}`, { key })).status, 204);
  });

  it('a key that is limited in time or to addresses makes nothing that gives access or receives data beyond it', async () => {
    const limited = { expires_at: inFuture({ hours: 1 }) };
    for (const limits of [limited, { allowed_ips: ['127.0.0.0/8', '::1'] }]) {
      const json = { preset: 'full_access', ...limits };
      const { api_key: key } = bodyOf<{ api_key: string }>(await ours.call('POST', '/v1/keys', { json }), 201);
      for (const [method, url, scope] of ROUTES) {
        if (scope === 'public') continue;
        const answer = await service.call(String(method), url.replaceAll(/:\w+/g, 'x'), { key });
        const operation = `${String(method)} ${url}`;
        if (scope === 'manage-lasting')
          assertRefused(
            answer,
            403,
            'insufficient_scope',
            undefined,
            'this API key is limited in time or to addresses',
          );
        else assert.notEqual(answer.status, 403, operation);
      }
      const url = 'https://example.com/hook';
      assertRefused(await service.call('POST', '/v1/webhooks', { key, json: { url } }), 403, 'insufficient_scope');
      const email = { email: `bounced-${key.slice(-8).toLowerCase()}@example.net` };
      assert.equal((await service.call('POST', '/v1/suppressions', { key, json: email })).status, 201);
      const narrower = await service.call('POST', '/v1/keys', { key, json: { preset: 'read_only', ...limits } });
      assert.equal(narrower.status, 201, 'what it makes ends with it');
    }
  });

  it('routes that give access or redirect data beyond a key are marked: endpoints and their secrets, numbers, domains', () => {
    const lasting = ROUTES.filter(([, , scope]) => scope === 'manage-lasting').map(
      ([method, url]) => `${method} ${url}`,
    );
    assert.deepEqual(lasting, [
      ...['POST /v1/chatapp/numbers', 'POST /v1/domains', 'POST /v1/webhooks', 'PATCH /v1/webhooks/:id'],
      'POST /v1/webhooks/:id/rotate-secret',
    ]);
  });

  it('a key for certain domains reschedules and cancels only what they send', async () => {
    await ours.addDomain('mine.example');
    const scheduled_at = inFuture({ hours: 1 });
    const [mine, others] = [
      await ours.sent({ from: 'a@mine.example', scheduled_at }),
      await ours.sent({ scheduled_at }),
    ];
    const batch = async (...froms: string[]) => {
      const emails = froms.map((from) => ours.mail({ from, scheduled_at }));
      return bodyOf<{ id: string }>(await ours.call('POST', '/v1/emails/batch', { json: { emails } }), 202).id;
    };
    const mixed = await batch('a@mine.example', `a@${ours.domain}`);
    for (const preset of ['full_access', 'sending_access'] as const) {
      const key = await ours.addKey(preset, ['mine.example']);
      const move = (id: string) => service.call('PATCH', `/v1/emails/${id}`, { key, json: { scheduled_at } });
      assertRefused(await move(others), 403, 'insufficient_scope');
      assertRefused(await service.call('POST', `/v1/emails/${others}/cancel`, { key }), 403, 'insufficient_scope');
      assertRefused(await service.call('POST', `/v1/emails/batch/${mixed}/cancel`, { key }), 403, 'insufficient_scope');
      assertRefused(await service.call('POST', `/v1/emails/em_none/cancel`, { key }), 404, 'not_found');
      assert.equal((await move(mine)).status, 200);
      const whole = await batch('a@mine.example', 'b@mine.example');
      assert.equal((await service.call('POST', `/v1/emails/batch/${whole}/cancel`, { key })).status, 200);
    }
    assert.equal((await ours.email(others))['status'], 'scheduled');
    const key = await ours.addKey('sending_access', ['mine.example']);
    assert.equal((await service.call('POST', `/v1/emails/${mine}/cancel`, { key })).status, 200);
  });

  it('rescheduling and canceling are in the audit log with the key, and what fails is not', async () => {
    const theirs = await service.organization();
    const [scheduled_at, later] = [inFuture({ hours: 1 }), inFuture({ hours: 2 })];
    const post = async (status: number, method: string, path: string, json?: object) =>
      bodyOf<{ id: string }>(await theirs.call(method, path, json && { json }), status).id;
    const id = await theirs.sent({ scheduled_at });
    await post(200, 'PATCH', `/v1/emails/${id}`, { scheduled_at: later });
    await post(200, 'POST', `/v1/emails/${id}/cancel`);
    await post(422, 'POST', `/v1/emails/${id}/cancel`);
    await post(422, 'PATCH', `/v1/emails/${id}`, { scheduled_at: later });
    const emails = [theirs.mail({ scheduled_at }), theirs.mail({ scheduled_at })];
    const batch = await post(202, 'POST', '/v1/emails/batch', { emails });
    await post(200, 'POST', `/v1/emails/batch/${batch}/cancel`);
    const { rows } = await service.pool.query<{ detail: { scheduled_at?: string } }>(
      `SELECT actor_kind, actor_id, action, target, detail FROM audit_log WHERE org_id = $1 ORDER BY at, id`,
      [theirs.id],
    );
    const actor = { actor_kind: 'key', actor_id: `key_${theirs.key.split('_')[2]}` };
    const moved = rows[0]?.detail;
    assert.equal(Date.parse(moved?.scheduled_at ?? ''), Date.parse(later));
    assert.deepEqual(rows, [
      { ...actor, action: 'emails.reschedule', target: id, detail: moved },
      { ...actor, action: 'emails.cancel', target: id, detail: {} },
      { ...actor, action: 'batches.cancel', target: batch, detail: { canceled: 2 } },
    ]);
  });
});
