import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertRefused, bodyOf, inFuture, TIMESTAMP, useService } from './service.ts';

const SERVICE = `MG${'0123456789abcdef'.repeat(2)}`;
const [US, WORLD, TO] = ['+12025550142', '+12025550143', '+14165550123'] as const;

type Json = Record<string, unknown>;

const service = await useService();
const [ours, theirs, bare] = [await service.organization(), await service.organization(), await service.organization()];
await ours.addSender(WORLD);
await ours.addSender(US, ['US', 'CA']);
await ours.addSender(SERVICE, ['DE']);
await theirs.addSender('+12025550144');

const post = (json: Json, by = ours, headers: Record<string, string> = {}) =>
  by.call('POST', '/v1/sms', { json: { to: TO, text: 'Hi.', ...json }, headers });

const sent = async (json: Json) => bodyOf<Json & { id: string }>(await post(json), 202);
const shown = async (path: string) => bodyOf(await ours.call('GET', path), 200);

async function listed(query: string): Promise<unknown[]> {
  const { messages } = (await shown(`/v1/sms?${query}`)) as { messages: Json[] };
  return messages.map(({ id }) => id);
}

describe('POST /v1/sms', () => {
  it('returns 202 with exactly these fields, in this order', async () => {
    const answer = await sent({ to: '+1 (416) 555-0123', text: 'Größe [5]' });
    const { id, created_at } = answer;
    assert.match(id, /^sms_[0-9a-z]{26}$/);
    assert.match(String(created_at), TIMESTAMP);
    const size = { segments: 1, encoding: 'gsm7' };
    const expected = { id, status: 'queued', from: US, to: TO, country: 'CA', ...size, created_at, scheduled_at: null };
    assert.deepEqual(Object.entries(answer), Object.entries(expected));
  });

  for (const [name, json, expected] of [
    ['two segments of GSM-7', { text: 'a'.repeat(161) }, { segments: 2, encoding: 'gsm7' }],
    ['1,600 code points of UCS-2', { text: '😀'.repeat(1_600) }, { segments: 49, encoding: 'ucs2' }],
    ['a sender that serves the country', { to: '+4915112345678' }, { from: SERVICE, country: 'DE' }],
    ['a sender that serves all countries', { to: '+33612345678' }, { from: WORLD, country: 'FR' }],
    ['a named sender', { from: '+1 202 555 0143' }, { from: WORLD }],
    ['null for optional fields', { from: null, tags: null, scheduled_at: null }, { from: US, scheduled_at: null }],
  ] as const) {
    it(`accepts ${name}`, async () => {
      const answer = await sent(json);
      for (const [field, value] of Object.entries(expected)) assert.equal(answer[field], value, field);
    });
  }

  for (const [json, param] of [
    [{ to: undefined }, 'to'],
    [{ to: '4165550123' }, 'to'],
    [{ to: '+80012345678' }, 'to'],
    [{ to: [TO] }, 'to'],
    [{ text: undefined }, 'text'],
    [{ text: null }, 'text'],
    [{ text: '' }, 'text'],
    [{ text: '😀'.repeat(1_601) }, 'text'],
    [{ text: 'a\0b' }, 'text'],
    [{ from: 'ACME' }, 'from'],
    [{ from: 'MG1' }, 'from'],
    [{ from: '' }, 'from'],
    [{ scheduled_at: 'tomorrow' }, 'scheduled_at'],
    [{ scheduled_at: '2020-01-01T00:00:00Z' }, 'scheduled_at'],
    [{ scheduled_at: inFuture({ days: 31 }) }, 'scheduled_at'],
    [{ tags: [{ name: 'a b', value: 'c' }] }, 'tags.0.name'],
    [{ type: 'text' }, 'type'],
  ] as const) {
    it(`refuses ${JSON.stringify(json).slice(0, 60)} with 422`, async () => {
      assertRefused(await post(json), 422, 'validation_error', param);
    });
  }

  it('returns no_sms_sender when no sender serves the country, or not the one in from', async () => {
    assertRefused(await post({}, bare), 422, 'no_sms_sender');
    assertRefused(await post({ from: '+12025550144' }), 422, 'no_sms_sender', 'from');
    assertRefused(await post({ from: US, to: '+4915112345678' }), 422, 'no_sms_sender', 'from');
    assertRefused(await post({ from: SERVICE }), 422, 'no_sms_sender', 'from');
  });

  it('accepts a message once per idempotency key', async () => {
    const headers = { 'idempotency-key': 'sms-1' };
    const [first, second] = [await post({}, ours, headers), await post({}, ours, headers)];
    assert.deepEqual([second.status, second.body], [202, first.body]);
    assertRefused(await post({ text: 'Other' }, ours, headers), 409, 'invalid_idempotent_request');
  });
});

describe('a stored SMS', () => {
  it('is shown with its text, tags and events', async () => {
    const tags = [{ name: 'kind', value: 'code' }];
    const { id, ...fields } = await sent({ text: 'Code 1', tags });
    const message = await shown(`/v1/sms/${id}`);
    const { last_event_at, events } = message;
    assert.deepEqual(message, { id, ...fields, tags, error: null, last_event_at, text: 'Code 1', events });
    assert.deepEqual(events, [{ type: 'sms.queued', created_at: fields['created_at'] }]);
    const { messages } = (await shown('/v1/sms?limit=1')) as { messages: Json[] };
    assert.deepEqual(messages, [{ id, ...fields, tags, error: null, last_event_at }]);
  });

  it('is found by recipient, status, tag and time, and page by page', async () => {
    const to = '+14165550177';
    const ids = [];
    for (const value of ['a', 'b', 'a']) ids.push((await sent({ to, tags: [{ name: 'n', value }] })).id);
    const [a, b, c] = ids;
    const number = encodeURIComponent(to);
    assert.deepEqual(await listed(`to=${number}`), [c, b, a]);
    assert.deepEqual(await listed('tag=n:a'), [c, a]);
    assert.deepEqual(await listed(`to=${number}&status=scheduled`), []);
    const { created_at } = await shown(`/v1/sms/${b ?? ''}`);
    assert.deepEqual(await listed(`to=${number}&created_before=${String(created_at)}`), [a]);
    assert.deepEqual((await listed(`to=${number}&created_after=${String(created_at)}`)).includes(a), false);
    const first = (await shown(`/v1/sms?to=${number}&limit=2`)) as { messages: Json[]; next_cursor: string };
    assert.deepEqual(await listed(`to=${number}&limit=2&cursor=${first.next_cursor}`), [a]);
    const foreign = await ours.call('GET', `/v1/chatapp?to=${number}&limit=2&cursor=${first.next_cursor}`);
    assertRefused(foreign, 422, 'validation_error', 'cursor');
    assertRefused(await ours.call('GET', '/v1/sms?status=read'), 422, 'validation_error', 'status');
  });

  it('can be rescheduled and canceled while it is scheduled', async () => {
    const { id, status, scheduled_at } = await sent({ scheduled_at: inFuture({ days: 1 }) });
    assert.deepEqual([status, typeof scheduled_at], ['scheduled', 'string']);
    const later = inFuture({ days: 2 });
    const moved = await ours.call('PATCH', `/v1/sms/${id}`, { json: { scheduled_at: later } });
    assert.deepEqual([moved.status, moved.body], [200, { id, status: 'scheduled', scheduled_at: later }]);
    const canceled = await ours.call('POST', `/v1/sms/${id}/cancel`);
    assert.deepEqual([canceled.status, canceled.body], [200, { id, status: 'canceled' }]);
    const refused = await ours.call('POST', `/v1/sms/${id}/cancel`);
    assertRefused(refused, 422, 'not_scheduled');
    assert.match(refused.text, /; this one is canceled"/);
    const { events } = (await shown(`/v1/sms/${id}`)) as { events: { type: string }[] };
    assert.deepEqual(
      events.map(({ type }) => type),
      ['sms.scheduled', 'sms.rescheduled', 'sms.canceled'],
    );
  });

  it('is no chat-app message', async () => {
    const { id } = await sent({ scheduled_at: inFuture({ days: 1 }) });
    assertRefused(await ours.call('GET', `/v1/chatapp/${id}`), 404, 'not_found');
    assert.equal((await ours.call('GET', '/v1/chatapp')).text.includes(id), false);
  });
});

describe('GET /v1/sms finds what was meant', () => {
  it('several tags require all of them', async () => {
    const tags = (...names: string[]) => names.map((name) => ({ name, value: 'x' }));
    const { id } = await sent({ tags: tags('both-a', 'both-b') });
    await sent({ tags: tags('both-a') });
    assert.deepEqual(await listed('tag=both-a:x&tag=both-b:x'), [id]);
    assert.deepEqual(await listed('tag=both-b:x&tag=both-a:x&tag=none:x'), []);
  });

  it("Mexico's old 1 and the prefix 00 name the same recipient", async () => {
    const { id, to } = await sent({ to: '+52 1 55 4163 7145', from: WORLD });
    assert.equal(to, '+525541637145');
    assert.deepEqual(await listed('to=%2B5215541637145'), [id]);
    assert.deepEqual(await listed('to=00525541637145'), [id]);
  });
});
