import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findMessage } from '../../src/store/messages/messages.ts';
import { connectNumber } from './resources.ts';
import { assertRefused, bodyOf, type Organization, TIMESTAMP, useService } from './service.ts';

type Json = Record<string, unknown>;
const TO = '+1 (416) 555-0123';
const LINK = 'https://cdn.example.com/receipt.pdf';

const service = await useService();
const ours = await service.organization();
const connect = async (organization: Organization) => (await connectNumber(organization)).number;
const from = await connect(ours);

const post = (json: Json, by = ours, headers: Record<string, string> = {}) =>
  by.call('POST', '/v1/chatapp', { json: { to: TO, text: 'Hi.', ...json }, headers });
const sent = async (json: Json, by = ours) => bodyOf<Json & { id: string }>(await post(json, by), 202);
const shown = async (id: string, by = ours) => bodyOf(await by.call('GET', `/v1/chatapp/${id}`), 200);
const components = [
  {
    type: 'body',
    parameters: [{ type: 'text', text: 'Ada' }, 1, 1.5, -0.25, true, null, '', { z: 1, a: { '2': [], '1': {} } }],
  },
];
const TEXT = { type: 'text', text: 'Hi.', preview_url: false, template: null, image: null, document: null };
const document = { link: LINK, caption: 'Yours', filename: 'ä b.pdf' };
/** The fields of requests besides `to`, and of the message if they differ. */
const ACCEPTED: Readonly<Record<string, readonly [given: Json, shown?: Json]>> = {
  'a text': [{ text: 'Hi.' }],
  'null for optional fields': [
    { from: null, type: null, preview_url: null, template: null, image: null, document: null },
    { ...TEXT },
  ],
  'a text with a preview of its link': [{ preview_url: true }],
  'a text of several lines': [{ text: 'a\r\n\tb\u2028c' }],
  'a template': [{ type: 'template', text: null, template: { name: 'receipt', language: 'en_US' } }],
  'a template with components, unchanged': [
    { type: 'template', text: null, template: { name: 'receipt', language: { code: 'de' }, components } },
  ],
  'a template with components that are null': [
    { type: 'template', text: null, template: { name: 'receipt', language: 'de', components: null } },
    { type: 'template', text: null, template: { name: 'receipt', language: 'de' } },
  ],
  'a text with a fallback template': [{ fallback_template: { name: 'receipt', language: 'en_US' } }],
  'an image': [{ type: 'image', text: null, image: { link: LINK } }],
  'an image whose caption is the text': [{ type: 'image', text: 'Look', image: { link: LINK, caption: null } }],
  'a document with a caption and a text': [{ type: 'document', text: 'Look', document }],
};

describe('POST /v1/chatapp', () => {
  for (const [name, [given, changed = given]] of Object.entries(ACCEPTED)) {
    it(`accepts ${name}, and GET /v1/chatapp/:id returns it`, async () => {
      const record: Json = { ...TEXT, ...changed };
      const accepted = await sent(given);
      const { id, created_at, ...rest } = accepted;
      assert.match(id, /^wa_[0-9a-z]{26}$/);
      assert.match(String(created_at), TIMESTAMP);
      assert.deepEqual(rest, { status: 'queued', type: record['type'], from, country: 'CA' });
      assert.deepEqual(await shown(id), {
        ...accepted,
        to: '+14165550123',
        error: null,
        error_code: null,
        last_event_at: created_at,
        ...record,
        events: [{ type: 'chatapp.queued', created_at }],
      });
    });
  }

  it('accepts a user id in place of a number, and lists its messages by it', async () => {
    const userId = 'DE.13491208655302741918';
    const accepted = await sent({ to: userId });
    assert.equal(accepted['country'], 'DE');
    const { to } = await shown(accepted.id);
    assert.equal(to, userId);
    const { messages } = bodyOf<{ messages: Json[] }>(await ours.call('GET', `/v1/chatapp?to=${userId}`), 200);
    assert.deepEqual(
      messages.map(({ id }) => id),
      [accepted.id],
    );
    for (const wrong of ['DE.', 'ZZ.1', `DE.${'1'.repeat(129)}`]) {
      assertRefused(await post({ to: wrong }), 422, 'validation_error', 'to');
    }
    assertRefused(await ours.call('GET', '/v1/chatapp?to=DE.'), 422, 'validation_error', 'to');
  });

  it('stores an outbox row and wakes the relay, and stores nothing of a refused message', async () => {
    const wakes = service.wakes();
    const { id } = await sent({});
    const stored = async () => (await service.pool.query<object>('SELECT message_id FROM outbox ORDER BY id')).rows;
    const before = await stored();
    assert.deepEqual(before.at(-1), { message_id: id });
    assertRefused(await post({ from: '+12025559999' }), 422, 'no_chatapp_account', 'from');
    assertRefused(await post({ type: 'image', text: null }), 422, 'validation_error', 'image');
    assert.deepEqual(await stored(), before);
    assert.equal(service.wakes(), wakes + 1);
  });

  it('publishes chatapp.queued with data.messageId', async () => {
    await ours.call('POST', '/v1/webhooks', { json: { url: 'https://example.com/', events: ['chatapp.queued'] } });
    const { id } = await sent({});
    const { rows } = await service.pool.query<{ type: string; data: Json }>(
      `SELECT type, data FROM webhook_events WHERE data->>'messageId' = $1`,
      [id],
    );
    const data = { messageId: id, from, to: '+14165550123', country: 'CA', type: 'text', status: 'queued' };
    assert.deepEqual(rows, [{ type: 'chatapp.queued', data }]);
  });

  it('stores components with the order of their keys', async () => {
    const raw = '{"b":1,"a":[1e2,"\\u00e9",{"z":null,"y":0.1}]}';
    const text = `{"to":"${TO}","type":"template","template":{"name":"t","language":"en","components":${raw}}}`;
    const answer = await ours.call('POST', '/v1/chatapp', {
      raw: text,
      headers: { 'content-type': 'application/json' },
    });
    const id = String(bodyOf(answer, 202)['id']);
    const message = await findMessage(service.pool, service.deps.contents, ours.id, 'chatapp', id);
    assert.equal(JSON.stringify(message?.template?.components), '{"b":1,"a":[100,"é",{"z":null,"y":0.1}]}');
  });
});

describe('from', () => {
  it('defaults to the only connected number, and is required with several', async () => {
    const org = await service.organization();
    assertRefused(await post({}, org), 422, 'no_chatapp_account', undefined, 'no chat-app number is connected');
    assertRefused(await post({ from }, org), 422, 'no_chatapp_account', 'from', `the number ${from} is not connected`);
    const one = await connect(org);
    assert.equal((await sent({}, org))['from'], one);
    assert.equal((await sent({ from: one }, org))['from'], one);
    const two = await connect(org);
    assertRefused(await post({}, org), 422, 'validation_error', 'from', 'is required, since several numbers');
    assert.equal((await sent({ from: one }, org))['from'], one);
    assert.equal((await sent({ from: `${two.slice(0, 3)} (${two.slice(3, 7)}) ${two.slice(7)}` }, org))['from'], two);
    for (const other of [from, '+12025559999', '+80012345678']) {
      assertRefused(await post({ from: other }, org), 422, 'no_chatapp_account', 'from');
    }
  });
});

describe('Idempotency-Key of POST /v1/chatapp', () => {
  it('replays the first response and refuses another request', async () => {
    const headers = { 'idempotency-key': 'chat-1' };
    const given = { type: 'template', text: null, template: { name: 't', language: 'en', components: [{ n: 100 }] } };
    const first = await post(given, ours, headers);
    const wakes = service.wakes();
    const again = await post(given, ours, headers);
    assert.deepEqual(bodyOf(again, 202), bodyOf(first, 202));
    assert.equal(first.headers['idempotent-replayed'], undefined);
    assert.equal(again.headers['idempotent-replayed'], 'true');
    assert.equal(service.wakes(), wakes);
    const raw = JSON.stringify({ ...given, to: TO }).replace('100', '1e2');
    const other = { raw, headers: { ...headers, 'content-type': 'application/json' } };
    assert.deepEqual(bodyOf(await ours.call('POST', '/v1/chatapp', other), 202), first.body);
    assertRefused(await post({ ...given, to: '+14165550124' }, ours, headers), 409, 'invalid_idempotent_request');
    const email = await ours.call('POST', '/v1/emails', { json: ours.mail(), headers });
    assertRefused(email, 409, 'invalid_idempotent_request');
  });
});

it('POST /v1/chatapp accepts a body of at most 1 MB', async () => {
  const json = { to: TO, text: 'x'.repeat(1_048_576) };
  assertRefused(await ours.call('POST', '/v1/chatapp', { json }), 413, 'payload_too_large');
});
