import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EVENT_TYPES } from '../../src/domain/event-types.ts';
import { REACHABLE } from '../public-fetch/web.ts';
import { assertDescribed, assertEvent, type Described } from './described.ts';
import { allPages, assertRefused, bodyOf, inFuture, TIMESTAMP, useService } from './service.ts';

type Json = Record<string, unknown>;
type Delivery = Json & { id: string; type: string };
const HOOK_URL = 'https://example.com/hook';

const service = await useService();
const ours = await service.organization();

const create = async (fields: Json = {}, by = ours) =>
  bodyOf<Json & { id: string; secret: string }>(
    await by.call('POST', '/v1/webhooks', { json: { url: HOOK_URL, ...fields } }),
    201,
  );
const disable = (id: string) => ours.call('PATCH', `/v1/webhooks/${id}`, { json: { status: 'disabled' } });

async function deliveries(id: string, query = ''): Promise<Delivery[]> {
  const answer = await ours.call('GET', `/v1/webhooks/${id}/deliveries${query}`);
  return bodyOf<{ deliveries: Delivery[] }>(answer, 200).deliveries;
}
const typesOf = (list: readonly Delivery[]) => list.map(({ type }) => type);

const { id: existingId } = await create({ events: ['email.bounced'] });

describe('a webhook endpoint', () => {
  it('returns its secret only when it is created, and stores it encrypted', async () => {
    const { id, secret, created_at, ...rest } = await create({
      events: ['email.sent', 'email.sent'],
      description: 'mine',
    });
    assert.match(id, /^wh_[0-9a-z]{26}$/);
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
    assert.match(String(created_at), TIMESTAMP);
    const given = { url: HOOK_URL, description: 'mine', events: ['email.sent'] };
    const shown = { ...given, status: 'enabled', disabled_reason: null, disabled_at: null, failing_since: null };
    assert.deepEqual(rest, shown);
    const got = await ours.call('GET', `/v1/webhooks/${id}`);
    assert.deepEqual(bodyOf(got, 200), { id, created_at, ...shown });
    const text = 'SELECT secret FROM webhook_endpoints WHERE id = $1';
    const { rows } = await service.pool.query<{ secret: Buffer }>(text, [id]);
    assert.ok(!rows[0]?.secret.includes(Buffer.from(secret.slice(6), 'base64')));
  });

  it('takes null for optional fields, every event type, and http where the operator allows it', async () => {
    const { events, description } = await create({ events: null, description: null });
    assert.deepEqual([events, description], [[], null]);
    assert.deepEqual((await create({ events: EVENT_TYPES }))['events'], EVENT_TYPES);
    assert.equal((await create({ url: `http://${REACHABLE}:4000/x` }))['url'], `http://${REACHABLE}:4000/x`);
    assert.equal((await create({ url: `https://example.com/${'x'.repeat(1_980)}` }))['status'], 'enabled');
  });

  it('is listed latest first, in pages, without its secret', async () => {
    const theirs = await service.organization();
    const created: string[] = [];
    for (let i = 0; i < 3; i++) created.unshift((await create({}, theirs)).id);
    const listed = await allPages(theirs, '/v1/webhooks', 2);
    const ids = listed.map(({ id }) => id);
    assert.deepEqual(ids, created);
    assert.ok(!JSON.stringify(listed).includes('secret'));
  });

  it('is changed by PATCH in the given fields only', async () => {
    const { id, secret, ...before } = await create({ events: ['email.sent'], description: 'mine' });
    assert.ok(secret);
    const patch = async (json: Json) => bodyOf(await ours.call('PATCH', `/v1/webhooks/${id}`, { json }), 200);
    assert.deepEqual(await patch({}), { id, ...before });
    assert.deepEqual(await patch({ url: null, events: null, description: null, status: null }), { id, ...before });
    const url = 'https://example.com/other';
    assert.deepEqual(await patch({ url }), { id, ...before, url });
    assert.deepEqual(await patch({ events: [] }), { id, ...before, url, events: [] });
    assert.deepEqual(await patch({ description: '' }), { id, ...before, url, events: [], description: null });
  });

  it('is no longer failing when it gets another URL', async () => {
    const { id } = await create();
    await service.pool.query(`UPDATE webhook_endpoints SET failing_since = now() - interval '4 days' WHERE id = $1`, [
      id,
    ]);
    const failingSince = async (json: Json) =>
      bodyOf(await ours.call('PATCH', `/v1/webhooks/${id}`, { json }), 200)['failing_since'];
    const since = await failingSince({ description: 'the same URL' });
    assert.equal(typeof since, 'string');
    assert.equal(await failingSince({ url: HOOK_URL }), since);
    assert.equal(await failingSince({ url: 'https://example.com/other' }), null);
  });

  it('gets no deliveries while it is disabled, and wakes the workers when it is enabled', async () => {
    const { id } = await create();
    const patch = async (status: string) =>
      bodyOf(await ours.call('PATCH', `/v1/webhooks/${id}`, { json: { status } }), 200)['status'];
    assert.equal(await patch('disabled'), 'disabled');
    await ours.sent();
    assert.equal((await deliveries(id)).length, 0);
    const wakes = service.wakes();
    assert.equal(await patch('enabled'), 'enabled');
    assert.equal(service.wakes(), wakes + 1);
    await ours.sent();
    assert.equal((await deliveries(id)).length, 1);
  });

  it('sends at once what waited for a retry when it is enabled after being disabled, and only then', async () => {
    const { id } = await create();
    await ours.sent();
    const inAnHour = `UPDATE webhook_deliveries SET next_attempt_at = now() + interval '1 hour' WHERE endpoint_id = $1`;
    await service.pool.query(inAnHour, [id]);
    const isDueAfter = async (status: string) => {
      bodyOf(await ours.call('PATCH', `/v1/webhooks/${id}`, { json: { status } }), 200);
      const [delivery] = await deliveries(id);
      assert.ok(delivery);
      return Date.parse(String(delivery['next_attempt_at'])) <= Date.now();
    };
    for (const status of ['enabled', 'disabled']) assert.equal(await isDueAfter(status), false, status);
    assert.equal(await isDueAfter('enabled'), true);
  });

  it('is gone after DELETE', async () => {
    const { id } = await create();
    const answer = await ours.call('DELETE', `/v1/webhooks/${id}`);
    assert.deepEqual([answer.status, answer.text], [204, '']);
    for (const method of ['GET', 'DELETE']) {
      assertRefused(await ours.call(method, `/v1/webhooks/${id}`), 404, 'not_found');
    }
    await ours.sent();
  });
});

describe('a malformed request about webhooks', () => {
  const SINCE = '2026-03-01T00:00:00Z';
  for (const [method, path, json, param] of [
    ['POST', '', { url: '/hook' }, 'url'],
    ['POST', '', { url: 'http://8.8.8.8/' }, 'url'],
    ['POST', '', { url: `https://example.com/${'x'.repeat(1_981)}` }, 'url'],
    ['POST', '', { url: HOOK_URL, events: ['email.sent', 'email'] }, 'events.1'],
    ['POST', '', { url: HOOK_URL, description: 'x'.repeat(501) }, 'description'],
    ['PATCH', `/${existingId}`, { status: 'paused' }, 'status'],
    ['PATCH', `/${existingId}`, { url: 'https://127.0.0.1/' }, 'url'],
    ['GET', `/${existingId}/deliveries?status=x`, undefined, 'status'],
    ['GET', `/${existingId}/deliveries?limit=101`, undefined, 'limit'],
    ['POST', `/${existingId}/replay`, { since: 'yesterday' }, 'since'],
    ['POST', `/${existingId}/replay`, { since: SINCE, until: '2026-02-01T00:00:00Z' }, 'until'],
    ['POST', `/${existingId}/replay`, { since: SINCE, status: 'x' }, 'status'],
  ] as const) {
    const what = JSON.stringify(json ?? {}).slice(0, 80);
    it(`returns 422 for ${param}: ${method} ${path.replace(existingId, ':id')} ${what}`, async () => {
      const answer = await ours.call(method, `/v1/webhooks${path}`, json && { json });
      assertRefused(answer, 422, 'validation_error', param);
    });
  }
});

describe('deliveries of an endpoint', () => {
  it('are created for the events that it subscribes to', async () => {
    const some = await create({ events: ['email.scheduled', 'email.canceled'] });
    const every = await create();
    const id = await ours.sent({ scheduled_at: inFuture({ hours: 1 }) });
    await ours.call('POST', `/v1/emails/${id}/cancel`);
    await ours.sent();
    assert.deepEqual(typesOf(await deliveries(some.id)), ['email.canceled', 'email.scheduled']);
    assert.deepEqual(typesOf(await deliveries(every.id)), ['email.queued', 'email.canceled', 'email.scheduled']);
  });

  it('are listed latest first, by status, in pages of one endpoint and one status', async () => {
    const { id } = await create({ events: ['email.queued'] });
    const other = await create();
    for (let i = 0; i < 5; i++) await ours.sent();
    const all = await deliveries(id);
    assert.deepEqual(Object.keys(all[0] ?? {}), ['id', 'event_id', 'type', 'status', 'created_at', 'next_attempt_at']);
    assert.match(all[0]?.id ?? '', /^whd_[0-9a-z]{26}$/);
    assert.deepEqual(await deliveries(id, '?status=pending'), all);
    assert.deepEqual(await deliveries(id, '?status=failed'), []);
    assert.deepEqual(await allPages(ours, `/v1/webhooks/${id}/deliveries`, 3), all);
    const first = await ours.call('GET', `/v1/webhooks/${id}/deliveries?limit=3`);
    const { next_cursor: cursor } = bodyOf<{ next_cursor: string }>(first, 200);
    for (const path of [`${other.id}/deliveries?`, `${id}/deliveries?status=pending&`]) {
      const answer = await ours.call('GET', `/v1/webhooks/${path}cursor=${cursor}`);
      assertRefused(answer, 422, 'validation_error', 'cursor');
    }
  });

  it('are shown with their payload and attempts, and only by their own endpoint', async () => {
    const { id } = await create();
    const email = await ours.sent({ subject: 'Hello' });
    const [delivery] = await deliveries(id);
    const path = `/v1/webhooks/${id}/deliveries/${delivery?.id}`;
    const shown = bodyOf<Json & { payload: { data: Json } }>(await ours.call('GET', path), 200);
    const { payload, attempts, ...rest } = shown;
    assert.deepEqual(rest, delivery);
    assert.deepEqual(attempts, []);
    assert.deepEqual([payload.data['emailId'], payload.data['subject']], [email, 'Hello']);
    await service.pool.query(
      `INSERT INTO webhook_attempts (delivery_id, at, status_code, duration_ms, response, error)
       VALUES ($1, now(), NULL, 15000, NULL, 'timeout'), ($1, now() - interval '5 s', 500, 12, 'no', NULL)`,
      [delivery?.id],
    );
    const again = bodyOf<{ attempts: Json[] }>(await ours.call('GET', path), 200);
    assert.deepEqual(
      again.attempts.map(({ at, ...attempt }) => (assert.match(String(at), TIMESTAMP), attempt)),
      [
        { status_code: 500, duration_ms: 12, response: 'no', error: null },
        { status_code: null, duration_ms: 15_000, response: null, error: 'timeout' },
      ],
    );
    const elsewhere = path.replace(id, (await create()).id);
    assertRefused(await ours.call('GET', elsewhere), 404, 'not_found');
    assertRefused(await ours.call('POST', `${elsewhere}/replay`), 404, 'not_found');
  });

  it('are shown with their latest 100 attempts, oldest first', async () => {
    const { id } = await create({ events: ['email.queued'] });
    await ours.sent();
    const [delivery] = await deliveries(id);
    await service.pool.query(
      `INSERT INTO webhook_attempts (delivery_id, at, status_code, duration_ms)
       SELECT $1, now() - (150 - n) * interval '1 s', 500, n FROM generate_series(1, 150) AS n`,
      [delivery?.id],
    );
    const answer = await ours.call('GET', `/v1/webhooks/${id}/deliveries/${delivery?.id}`);
    const { attempts } = bodyOf<{ attempts: { duration_ms: number }[] }>(answer, 200);
    assert.deepEqual(
      attempts.map(({ duration_ms }) => duration_ms),
      Array.from({ length: 100 }, (_, i) => 51 + i),
    );
  });

  it('include tests, which only that endpoint gets, for any subscription', async () => {
    const { id } = await create({ events: ['email.bounced'] });
    const other = await create();
    const test = bodyOf(await ours.call('POST', `/v1/webhooks/${id}/test`), 202);
    assert.deepEqual([test['type'], test['status']], ['webhook.test', 'pending']);
    assert.deepEqual(await deliveries(id), [test]);
    assert.deepEqual(await deliveries(other.id), []);
  });

  it('of email.scheduled and email.rescheduled contain the scheduled time, those of email.queued do not', async () => {
    const { id } = await create({ events: ['email.queued', 'email.scheduled', 'email.rescheduled'] });
    const [first, second] = [inFuture({ hours: 1 }), inFuture({ hours: 2 })];
    const email = await ours.sent({ scheduled_at: first });
    bodyOf(await ours.call('PATCH', `/v1/emails/${email}`, { json: { scheduled_at: second } }), 200);
    await ours.sent();
    const api = (await service.call('GET', '/openapi.json')).body as Described;
    const times: Record<string, unknown> = {};
    for (const delivery of await deliveries(id)) {
      const answer = await ours.call('GET', `/v1/webhooks/${id}/deliveries/${delivery.id}`);
      const { payload } = bodyOf<{ payload: { type: string; data: Json } }>(answer, 200);
      assertEvent(api, payload);
      times[payload.type] = payload.data['scheduledAt'];
    }
    assert.deepEqual(times, { 'email.queued': undefined, 'email.rescheduled': second, 'email.scheduled': first });
  });

  it('still contain the id of an email whose record was deleted', async () => {
    const { id } = await create({ events: ['email.queued'] });
    const email = await ours.sent();
    const [delivery] = await deliveries(id);
    await service.pool.query('DELETE FROM emails WHERE id = $1', [email]);
    const api = (await service.call('GET', '/openapi.json')).body as Described;
    const answer = await ours.call('GET', `/v1/webhooks/${id}/deliveries/${delivery?.id}`);
    assertDescribed(api, '/v1/webhooks/{id}/deliveries/{deliveryId}', 'get', answer);
    const { payload } = bodyOf<{ payload: { type: string; data: Json } }>(answer, 200);
    assertEvent(api, payload);
    assert.deepEqual(payload.data, { emailId: email, status: 'queued' });
  });
});

describe('replay', () => {
  /** An endpoint with deliveries of these statuses, an hour apart, the last of them now. */
  async function withDeliveries(...statuses: string[]): Promise<{ id: string; all: string[] }> {
    const { id } = await create({ events: ['email.queued'] });
    for (let i = 0; i < statuses.length; i++) await ours.sent();
    const all = (await deliveries(id)).map((delivery) => delivery.id).reverse();
    for (const [index, status] of statuses.entries()) {
      await service.pool.query(
        `UPDATE webhook_deliveries SET status = $2, tries = 3, created_at = now() - make_interval(hours => $3),
           next_attempt_at = CASE WHEN $2 = 'pending' THEN now() + interval '1 hour' END
         WHERE id = $1`,
        [all[index], status, statuses.length - 1 - index],
      );
    }
    return { id, all };
  }
  const due = async (id: string): Promise<string[]> => {
    const { rows } = await service.pool.query<{ id: string }>(
      `SELECT id FROM webhook_deliveries WHERE endpoint_id = $1 AND status = 'pending' AND tries = 0 AND next_attempt_at <= now()
       ORDER BY created_at`,
      [id],
    );
    return rows.map((row) => row.id);
  };
  const hoursAgo = (hours: number) => inFuture({ hours: -hours });

  it('makes one delivery pending and wakes the workers', async () => {
    const { id, all } = await withDeliveries('failed', 'succeeded');
    const wakes = service.wakes();
    const answer = await ours.call('POST', `/v1/webhooks/${id}/deliveries/${all[0]}/replay`);
    assert.equal(bodyOf(answer, 202)['status'], 'pending');
    assert.deepEqual(await due(id), [all[0]]);
    assert.equal(service.wakes(), wakes + 1);
  });

  it('of a period includes all of its deliveries, or those of one status', async () => {
    const { id, all } = await withDeliveries('failed', 'succeeded', 'pending', 'failed');
    const replay = async (json: Json) =>
      bodyOf<{ replayed: number }>(await ours.call('POST', `/v1/webhooks/${id}/replay`, { json }), 202).replayed;
    assert.equal(await replay({ since: hoursAgo(2.5), until: hoursAgo(0.5), status: 'failed' }), 0);
    assert.equal(await replay({ since: hoursAgo(2.5), until: hoursAgo(0.5) }), 2);
    assert.deepEqual(await due(id), [all[1], all[2]]);
    assert.equal(await replay({ since: hoursAgo(9), status: 'failed' }), 2);
    assert.deepEqual(await due(id), all);
    assert.equal(await replay({ since: hoursAgo(9), until: null, status: null }), 4);
  });

  it('of a period without an end, or with a later one, leaves out deliveries of events that happen after it', async () => {
    const { id, all } = await withDeliveries('succeeded', 'succeeded');
    await service.pool.query(`UPDATE webhook_deliveries SET created_at = now() + interval '1 minute' WHERE id = $1`, [
      all[1],
    ]);
    for (const until of [null, inFuture({ hours: 1 })]) {
      const json = { since: hoursAgo(9), until };
      const answer = await ours.call('POST', `/v1/webhooks/${id}/replay`, { json });
      assert.deepEqual(bodyOf(answer, 202), { replayed: 1 });
    }
    assert.deepEqual(await due(id), [all[0]]);
  });

  it('and test return 409 while the endpoint is disabled', async () => {
    const { id, all } = await withDeliveries('failed');
    await disable(id);
    for (const [path, json] of [
      ['test', undefined],
      [`deliveries/${all[0]}/replay`, undefined],
      ['replay', { since: hoursAgo(1) }],
    ] as const) {
      assertRefused(await ours.call('POST', `/v1/webhooks/${id}/${path}`, json && { json }), 409, 'conflict');
    }
  });
});
