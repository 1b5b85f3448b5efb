import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Answer, assertRefused, type Organization, type Service, startService, TIMESTAMP } from './service.ts';

type Json = Record<string, unknown>;
const TO = '+1 (416) 555-0123';
const LINK = 'https://cdn.example.com/receipt.pdf';
const NONE = `wa_${'0'.repeat(26)}`;

let service: Service;
let ours: Organization;
let from: string;
before(async () => {
  service = await startService();
  ours = await service.organization();
  from = await connect(ours);
});
after(() => service.close());

let numbers = 0;
/** Connects a number of its own. @returns it */
async function connect(organization: Organization): Promise<string> {
  const number = `+1202555${String(++numbers).padStart(4, '0')}`;
  const answer = await organization.call('POST', '/v1/chatapp/numbers', {
    json: { number, provider: 'twilio', auth_token: 'token' },
  });
  assert.equal(answer.status, 201, answer.text);
  return number;
}

const post = (json: Json, by = ours, headers: Record<string, string> = {}) =>
  by.call('POST', '/v1/chatapp', { json: { to: TO, text: 'Hi.', ...json }, headers });
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the test knows what it is given
const body = <T = Json>(answer: Answer, status: number): T => {
  assert.equal(answer.status, status, answer.text);
  return answer.body as T;
};
const sent = async (json: Json, by = ours) => body<Json & { id: string }>(await post(json, by), 202);
const shown = async (id: string, by = ours) => body(await by.call('GET', `/v1/chatapp/${id}`), 200);
const count = async (table: string, id: string) =>
  (await service.pool.query(`SELECT FROM ${table} WHERE ${table === 'chat_messages' ? 'id' : 'message_id'} = $1`, [id]))
    .rowCount;

/** What is asked for besides `to`, and what the record shows of it. */
const TEXT = { type: 'text', text: 'Hi.', preview_url: false, template: null, image: null, document: null };
const components = [
  {
    type: 'body',
    parameters: [{ type: 'text', text: 'Ada' }, 1, 1.5, -0.25, true, null, '', { z: 1, a: { '2': [], '1': {} } }],
  },
];
const ACCEPTED: Readonly<Record<string, readonly [given: Json, record: Json]>> = {
  'a text': [{ text: 'Hi.' }, TEXT],
  'a text with what may be left out as null': [
    { from: null, type: null, preview_url: null, template: null, image: null, document: null },
    TEXT,
  ],
  'a text with a preview of its link': [{ preview_url: true }, { ...TEXT, preview_url: true }],
  'a text of 4,096 characters': [{ text: '😀'.repeat(4_096) }, { ...TEXT, text: '😀'.repeat(4_096) }],
  'a text of several lines': [{ text: 'a\r\n\tb\u2028c' }, { ...TEXT, text: 'a\r\n\tb\u2028c' }],
  'a template': [
    { type: 'template', text: null, template: { name: 'receipt', language: 'en_US' } },
    { ...TEXT, type: 'template', text: null, template: { name: 'receipt', language: 'en_US' } },
  ],
  'a template with components, which stay as they are': [
    { type: 'template', text: null, template: { name: 'receipt', language: { code: 'de' }, components } },
    { ...TEXT, type: 'template', text: null, template: { name: 'receipt', language: { code: 'de' }, components } },
  ],
  'a template with components that are null': [
    { type: 'template', text: null, template: { name: 'receipt', language: 'de', components: null } },
    { ...TEXT, type: 'template', text: null, template: { name: 'receipt', language: 'de' } },
  ],
  'an image': [
    { type: 'image', text: null, image: { link: LINK } },
    { ...TEXT, type: 'image', text: null, image: { link: LINK } },
  ],
  'an image whose caption is the text': [
    { type: 'image', text: 'Look', image: { link: LINK, caption: null } },
    { ...TEXT, type: 'image', text: 'Look', image: { link: LINK, caption: null } },
  ],
  'a document with a caption and a text beside it': [
    { type: 'document', text: 'Look', document: { link: LINK, caption: 'Yours', filename: 'ä b.pdf' } },
    { ...TEXT, type: 'document', text: 'Look', document: { link: LINK, caption: 'Yours', filename: 'ä b.pdf' } },
  ],
};

describe('POST /v1/chatapp', () => {
  for (const [what, [given, record]] of Object.entries(ACCEPTED)) {
    it(`accepts ${what}, and GET /v1/chatapp/:id shows what was given`, async () => {
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

  it('stores a message, its event and what the relay needs, and wakes it; a refusal stores nothing', async () => {
    const wakes = service.wakes();
    const { id } = await sent({});
    assert.deepEqual(
      await Promise.all(['chat_messages', 'chat_events', 'outbox'].map((table) => count(table, id))),
      [1, 1, 1],
    );
    const all = async () => (await service.pool.query('SELECT FROM chat_messages')).rowCount;
    const before = await all();
    assertRefused(await post({ from: '+12025559999' }), 422, 'no_chatapp_account', 'from');
    assertRefused(await post({ type: 'image', text: null }), 422, 'validation_error', 'image');
    assert.equal(await all(), before);
    assert.equal(service.wakes(), wakes + 1);
  });

  it('tells endpoints chatapp.queued with data.messageId', async () => {
    await ours.call('POST', '/v1/webhooks', { json: { url: 'https://example.com/', events: ['chatapp.queued'] } });
    const { id } = await sent({});
    const { rows } = await service.pool.query<{ type: string; data: Json }>(
      `SELECT type, data FROM webhook_events WHERE data->>'messageId' = $1`,
      [id],
    );
    const data = { messageId: id, from, to: '+14165550123', country: 'CA', type: 'text', status: 'queued' };
    assert.deepEqual(rows, [{ type: 'chatapp.queued', data }]);
  });

  it('keeps components as they are down to the order of their keys', async () => {
    const raw = '{"b":1,"a":[1e2,"\\u00e9",{"z":null,"y":0.1}]}';
    const text = `{"to":"${TO}","type":"template","template":{"name":"t","language":"en","components":${raw}}}`;
    const answer = await ours.call('POST', '/v1/chatapp', {
      raw: text,
      headers: { 'content-type': 'application/json' },
    });
    const { rows } = await service.pool.query<{ components: string }>(
      `SELECT content->'template'->>'components' AS components FROM chat_messages WHERE id = $1`,
      [body(answer, 202)['id']],
    );
    assert.equal(rows[0]?.components, '{"b":1,"a":[100,"é",{"z":null,"y":0.1}]}');
  });
});

describe('from', () => {
  it('is the number that is connected, else it must be given', async () => {
    const org = await service.organization();
    assertRefused(await post({}, org), 422, 'no_chatapp_account', undefined, 'no chat-app number is connected');
    assertRefused(await post({ from }, org), 422, 'no_chatapp_account', 'from', `the number ${from} is not connected`);
    const one = await connect(org);
    assert.equal((await sent({}, org))['from'], one);
    assert.equal((await sent({ from: one }, org))['from'], one);
    const two = await connect(org);
    const before = body<{ messages: unknown[] }>(await org.call('GET', '/v1/chatapp'), 200);
    assertRefused(await post({}, org), 422, 'validation_error', 'from', 'is required, since several numbers');
    assert.deepEqual(body(await org.call('GET', '/v1/chatapp'), 200), before, 'nothing was stored');
    assert.equal(before.messages.length, 2);
    assert.equal((await sent({ from: one }, org))['from'], one);
    assert.equal((await sent({ from: `${two.slice(0, 2)} (${two.slice(2, 5)}) ${two.slice(5)}` }, org))['from'], two);
    for (const stranger of [from, '+12025559999', '+80012345678']) {
      assertRefused(await post({ from: stranger }, org), 422, 'no_chatapp_account', 'from');
    }
    for (const malformed of ['', '12025550142', '+1', 'x', '+1202555014']) {
      assertRefused(await post({ from: malformed }, org), 422, 'validation_error', 'from');
    }
  });
});

describe('Idempotency-Key of POST /v1/chatapp', () => {
  it('gives the first answer once more, and refuses another request', async () => {
    const headers = { 'idempotency-key': 'chat-1' };
    const given = { type: 'template', text: null, template: { name: 't', language: 'en', components: [{ n: 100 }] } };
    const first = await post(given, ours, headers);
    const wakes = service.wakes();
    const again = await post(given, ours, headers);
    assert.deepEqual(body(again, 202), body(first, 202));
    assert.equal(first.headers['idempotent-replayed'], undefined);
    assert.equal(again.headers['idempotent-replayed'], 'true');
    assert.equal(service.wakes(), wakes);
    const raw = JSON.stringify({ ...given, to: TO }).replace('100', '1e2');
    const other = { raw, headers: { ...headers, 'content-type': 'application/json' } };
    assert.deepEqual(body(await ours.call('POST', '/v1/chatapp', other), 202), first.body);
    assertRefused(await post({ ...given, to: '+14165550124' }, ours, headers), 409, 'invalid_idempotent_request');
    const email = await ours.call('POST', '/v1/emails', { json: ours.mail(), headers });
    assertRefused(email, 409, 'invalid_idempotent_request');
    assertRefused(await post({}, ours, { 'idempotency-key': '' }), 400, 'invalid_idempotency_key');
  });

  it('is free again after a refusal', async () => {
    const org = await service.organization();
    const headers = { 'idempotency-key': 'chat-2' };
    assertRefused(await post({}, org, headers), 422, 'no_chatapp_account');
    await connect(org);
    assert.equal((await post({}, org, headers)).status, 202);
  });
});

describe('who may', () => {
  it('another organization’s message and one that does not exist look the same', async () => {
    const { id } = await sent({});
    const theirs = await service.organization();
    for (const each of [id, NONE, 'x']) {
      const answer = await theirs.call('GET', `/v1/chatapp/${each}`);
      assertRefused(answer, 404, 'not_found', undefined, 'there is no chat-app message with this id');
    }
  });

  it('sending_access sends and reads nothing, read_only reads', async () => {
    const { id } = await sent({});
    const [sending, readOnly] = [await ours.addKey('sending_access'), await ours.addKey('read_only')];
    const ask = (key: string, method: string, path: string, json?: Json) =>
      service.call(method, path, { key, ...(json && { json }) });
    assert.equal((await ask(sending, 'POST', '/v1/chatapp', { to: TO, text: 'Hi.' })).status, 202);
    assertRefused(await ask(readOnly, 'POST', '/v1/chatapp', { to: TO, text: 'Hi.' }), 403, 'insufficient_scope');
    for (const path of ['/v1/chatapp', `/v1/chatapp/${id}`]) {
      assert.equal((await ask(readOnly, 'GET', path)).status, 200);
      assertRefused(await ask(sending, 'GET', path), 403, 'insufficient_scope');
      assertRefused(await service.call('GET', path), 401, 'unauthorized');
    }
  });

  it('405 for other methods, with those that there are', async () => {
    const answer = await ours.call('PUT', '/v1/chatapp');
    assertRefused(answer, 405, 'method_not_allowed');
    assert.equal(answer.headers['allow'], 'POST, GET');
  });
});

describe('the body of POST /v1/chatapp', () => {
  const json = { 'content-type': 'application/json' };

  it('is JSON, of 1 MB at most', async () => {
    const large = JSON.stringify({ to: TO, text: 'x'.repeat(1_048_576) });
    for (const [raw, headers, status, code] of [
      ['{', json, 400, 'invalid_json'],
      ['', json, 400, 'invalid_json'],
      ['{}', { 'content-type': 'text/plain' }, 415, 'unsupported_media_type'],
      [large, json, 413, 'payload_too_large'],
      ['[]', json, 422, 'validation_error'],
    ] as const) {
      assertRefused(await ours.call('POST', '/v1/chatapp', { raw, headers }), status, code);
    }
  });
});
