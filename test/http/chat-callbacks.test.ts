import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chatSeal, connectNumberForOperator, removeNumber } from '../../src/accounts/chat-numbers.ts';
import { newId } from '../../src/lib/ids.ts';
import { makePool } from '../../src/store/postgres/pool.ts';
import { acceptText, chatRow, chatTimeline, connect } from '../store/chats.ts';
import { metaRequest, metaSignature, twilioRequest } from './provider-callbacks.ts';
import { type Answer, assertRefused, CHAT_CALLBACKS, SECRET_KEY, startService, useService } from './service.ts';

const PUBLIC_URL = 'https://mail.example/base';

const service = await useService({ publicUrl: PUBLIC_URL });
const ours = await service.organization();
const { number: from } = await connect(service.pool, ours.id);
const { id: metaId, number: fromMeta } = await connect(service.pool, ours.id, 'meta');
const { rows: numbers } = await service.pool.query<{ phone_number_id: string }>(
  'SELECT phone_number_id FROM chat_numbers WHERE id = $1',
  [metaId],
);
const phoneNumberId = numbers[0]?.phone_number_id ?? '';

const accept = () => acceptText(service.pool, ours.id, from);
const acceptMeta = () => acceptText(service.pool, ours.id, fromMeta);

async function kept(provider: string): Promise<string[]> {
  const { rows } = await service.pool.query<{ body: string }>(
    'SELECT body FROM provider_callbacks WHERE provider = $1 ORDER BY id',
    [provider],
  );
  return rows.map(({ body }) => body);
}

/** A form as Twilio posts it (https://www.twilio.com/docs/messaging/guides/track-outbound-message-status). */
function form(status: string, fields: Record<string, string> = {}): Record<string, string> {
  const sids = { MessageSid: `SM${'0'.repeat(32)}`, AccountSid: `AC${'0'.repeat(32)}` };
  return { ...sids, MessageStatus: status, From: `whatsapp:${from}`, To: 'whatsapp:+4915123456789', ...fields };
}

function postTwilio(
  id: string,
  fields: Record<string, string>,
  given: { token?: string; sent?: Record<string, string>; path?: string; signed?: string } = {},
): Promise<Answer> {
  const { token, sent = fields, path = `/callbacks/twilio?m=${id}`, signed = path } = given;
  const { headers } = twilioRequest(PUBLIC_URL + signed, fields, token);
  return service.call('POST', path, { raw: new URLSearchParams(sent).toString(), headers });
}

describe('POST /callbacks/twilio', () => {
  it('records the status and wakes the relay for its webhooks', async () => {
    const id = await accept();
    const wakes = service.wakes();
    assert.equal((await postTwilio(id, form('read'))).status, 200);
    assert.equal((await chatRow(service.pool, id)).status, 'read');
    assert.equal(service.wakes(), wakes + 1);
  });

  it('counts once if it is sent 30 times concurrently', async () => {
    const id = await accept();
    const answers = await Promise.all(Array.from({ length: 30 }, () => postTwilio(id, form('delivered'))));
    for (const { status, body } of answers) assert.deepEqual([status, body], [200, {}]);
    assert.deepEqual(await chatTimeline(service.pool, id), ['queued', 'delivered']);
    const { provider, provider_message_id } = await chatRow(service.pool, id);
    assert.deepEqual([provider, provider_message_id], ['twilio', `SM${'0'.repeat(32)}`]);
  });

  it('returns 401 for a changed body, a wrong token, another URL and no signature, and changes nothing', async () => {
    const [id, other] = [await accept(), await accept()];
    const raw = new URLSearchParams(form('read')).toString();
    const path = `/callbacks/twilio?m=${id}`;
    for (const answer of [
      await postTwilio(id, form('sent'), { sent: form('read') }),
      await postTwilio(id, form('read'), { token: 'another token' }),
      await postTwilio(id, form('read'), { signed: `/callbacks/twilio?m=${other}` }),
      await service.call('POST', path, { raw }),
    ]) {
      assertRefused(answer, 401, 'unauthorized');
    }
    assert.deepEqual(await chatTimeline(service.pool, id), ['queued']);
  });

  it('for a number with its own token requires a signature with that token', async () => {
    const numberId = newId('num');
    const sealed = chatSeal(SECRET_KEY).close(Buffer.from('its own token'), numberId);
    const own = await connect(service.pool, ours.id, 'twilio', sealed, numberId);
    const id = await acceptText(service.pool, ours.id, own.number);
    assertRefused(await postTwilio(id, form('read')), 401, 'unauthorized');
    const fields = form('sent', { From: `whatsapp:${own.number}` });
    assert.equal((await postTwilio(id, fields, { token: 'its own token' })).status, 200);
    assert.equal((await chatRow(service.pool, id)).status, 'sent');
    // That token is not accepted for a message of another number.
    const another = await accept();
    assertRefused(await postTwilio(another, form('read'), { token: 'its own token' }), 401, 'unauthorized');
  });

  it('for a message that was sent before its number was connected again requires the new token', async () => {
    const seal = chatSeal(SECRET_KEY);
    const number = '+12025557777';
    const account = { provider: 'twilio', phone_number_id: null, account_sid: `AC${'0'.repeat(32)}` } as const;
    const request = { ...account, number, token: 'old-token', templates: [] };
    const { id: numberId } = await connectNumberForOperator(service.pool, seal, ours.id, request);
    const id = await acceptText(service.pool, ours.id, number);
    const sent = form('sent', { From: `whatsapp:${number}` });
    assert.equal((await postTwilio(id, sent, { token: 'old-token' })).status, 200);
    await removeNumber(service.pool, ours.id, numberId);
    await connectNumberForOperator(service.pool, seal, ours.id, { ...request, token: 'new-token' });
    const delivered = { ...sent, MessageStatus: 'delivered' };
    assertRefused(await postTwilio(id, delivered), 401, 'unauthorized');
    assert.equal((await postTwilio(id, delivered, { token: 'new-token' })).status, 200);
    assert.equal((await chatRow(service.pool, id)).status, 'delivered');
  });

  it('returns 200 if it does not match the message it names, is kept and changes nothing', async () => {
    const id = await accept();
    const count = (await kept('twilio')).length;
    const wrong = [form('read', { From: 'whatsapp:+12025559999' }), form('read', { To: 'whatsapp:+4915199999999' })];
    for (const fields of wrong) assert.equal((await postTwilio(id, fields)).status, 200);
    assert.equal((await postTwilio(await acceptMeta(), form('read', { From: `whatsapp:${fromMeta}` }))).status, 200);
    assert.equal((await postTwilio(id, form('sent'))).status, 200);
    assert.equal((await postTwilio(id, form('read', { MessageSid: `SM${'9'.repeat(32)}` }))).status, 200);
    assert.equal((await kept('twilio')).length, count + 4);
    assert.deepEqual(await chatTimeline(service.pool, id), ['queued', 'sent']);
  });

  it('returns 200 for an unknown message or status, and is kept', async () => {
    const unknown = newId('wa');
    assert.equal((await postTwilio(unknown, form('sent'))).status, 200);
    assert.equal((await postTwilio('', form('read'), { path: '/callbacks/twilio' })).status, 200);
    assert.equal((await postTwilio(await accept(), form('receiving'))).status, 200);
    assert.equal((await postTwilio('', form('sent'), { path: '/callbacks/twilio?m=%00&m=x' })).status, 200);
    const bodies = await kept('twilio');
    assert.ok(bodies.length >= 4);
    assert.match(bodies.at(-4) ?? '', new RegExp(`^/callbacks/twilio\\?m=${unknown} .*MessageStatus=sent`));
  });

  it('returns 413 for more than 64 kB', async () => {
    assertRefused(await postTwilio('', { x: 'x'.repeat(65_537) }), 413, 'payload_too_large');
  });
});

it('callbacks return 401 for every request without tokens in the settings', async (t) => {
  const chatCallbacks = { twilioAuthToken: undefined, metaAppSecret: undefined, metaVerifyToken: undefined };
  const { pool } = service;
  const unset = await startService({ pool, publicUrl: PUBLIC_URL, chatCallbacks });
  t.after(() => unset.close());
  for (const token of ['', 'undefined', 'null']) {
    const twilio = twilioRequest(`${PUBLIC_URL}/callbacks/twilio`, { a: 'b' }, token);
    assertRefused(await unset.call('POST', '/callbacks/twilio', twilio), 401, 'unauthorized');
    const meta = metaRequest('{}', metaSignature('{}', token));
    assertRefused(await unset.call('POST', '/callbacks/meta', meta), 401, 'unauthorized');
    const query = `hub.mode=subscribe&hub.challenge=1&hub.verify_token=${token}`;
    assertRefused(await unset.call('GET', `/callbacks/meta?${query}`), 401, 'unauthorized');
  }
});

/** A body as Meta posts it (https://developers.facebook.com/docs/whatsapp/cloud-api/webhooks/components). */
function post(...statuses: { id: string; status: string; ours?: string; more?: object }[]): string {
  const all = statuses.map(({ ours: biz_opaque_callback_data, more, ...fields }) => {
    return { ...fields, timestamp: '1767225600', recipient_id: '4915123456789', biz_opaque_callback_data, ...more };
  });
  const value = { messaging_product: 'whatsapp', metadata: { phone_number_id: phoneNumberId }, statuses: all };
  const body = { object: 'whatsapp_business_account', entry: [{ id: '0', changes: [{ value, field: 'messages' }] }] };
  // Meta escapes characters outside ASCII.
  return JSON.stringify(body).replace(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function postMeta(body: string | Buffer, signature?: string): Promise<Answer> {
  return service.call('POST', '/callbacks/meta', metaRequest(body, signature));
}

describe('GET /callbacks/meta', () => {
  const ask = (query: string) => service.call('GET', `/callbacks/meta?${query}`);
  const token = encodeURIComponent(CHAT_CALLBACKS.metaVerifyToken);

  it('returns the challenge for the verify token', async () => {
    const answer = await ask(`hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=${token}`);
    assert.deepEqual([answer.status, answer.text], [200, '1158201444']);
    assert.match(String(answer.headers['content-type']), /^text\/plain/);
    assert.equal(answer.headers['x-content-type-options'], 'nosniff');
  });

  it('returns 401 without the verify token', async () => {
    assertRefused(await ask('hub.mode=subscribe&hub.challenge=1&hub.verify_token=x'), 401, 'unauthorized');
  });
});

describe('POST /callbacks/meta', () => {
  it('records statuses of several messages, in any order and repeatedly', async () => {
    const [first, second] = [await acceptMeta(), await acceptMeta()];
    const body = post(
      { id: 'wamid.1', status: 'read', ours: first },
      { id: 'wamid.2', status: 'failed', ours: second, more: { errors: [{ code: 131026, title: 'Undeliverable' }] } },
      { id: 'wamid.1', status: 'delivered', ours: first },
      { id: 'wamid.1', status: 'sent', ours: first },
      { id: 'wamid.1', status: 'read', ours: first },
    );
    for (let i = 0; i < 3; i++) assert.deepEqual((await postMeta(body)).body, {});
    assert.equal((await chatRow(service.pool, first)).status, 'read');
    assert.deepEqual((await chatTimeline(service.pool, first)).sort(), ['delivered', 'queued', 'read', 'sent']);
    const { status, error_code } = await chatRow(service.pool, second);
    assert.deepEqual([status, error_code], ['failed', '131026']);
  });

  it('is signed over its raw bytes', async () => {
    const id = await acceptMeta();
    const more = { errors: [{ code: 131026, title: 'Nicht möglich' }] };
    const body = post({ id: 'wamid.3', status: 'failed', ours: id, more });
    assert.match(body, /\\u00f6/);
    const unescaped = Buffer.from(JSON.stringify(JSON.parse(body)));
    assertRefused(await postMeta(unescaped, metaSignature(body)), 401, 'unauthorized');
    assert.equal((await postMeta(body)).status, 200);
    assert.match((await chatRow(service.pool, id)).error ?? '', /möglich/);
  });

  it('returns 401 for a changed body, a wrong secret and no signature, and changes nothing', async () => {
    const id = await acceptMeta();
    const body = post({ id: 'wamid.4', status: 'read', ours: id });
    for (const answer of [
      await postMeta(body.replace('read', 'sent'), metaSignature(body)),
      await postMeta(body, metaSignature(body, 'another secret')),
      await postMeta(body, metaSignature(body).replace('sha256=', '')),
      await service.call('POST', '/callbacks/meta', { raw: body }),
    ]) {
      assertRefused(answer, 401, 'unauthorized');
    }
    assert.deepEqual(await chatTimeline(service.pool, id), ['queued']);
  });

  it('returns 200 for an unknown message or status, and is kept', async () => {
    const bodies = [
      post({ id: 'wamid.5', status: 'read', ours: newId('wa') }),
      post({ id: 'wamid.6', status: 'read' }),
      post({ id: 'wamid.7', status: 'warned', ours: await acceptMeta() }),
      '{"object":"page"}',
    ];
    for (const body of bodies) assert.equal((await postMeta(body)).status, 200, body);
    assert.deepEqual((await kept('meta')).slice(-4), bodies);
  });

  it('returns 400 for a body that is no JSON object, and is kept', async () => {
    const bodies = ['no JSON', '[]', 'a\0b'];
    for (const body of bodies) assertRefused(await postMeta(Buffer.from(body)), 400, 'invalid_json');
    assert.deepEqual((await kept('meta')).slice(-3), ['no JSON', '[]', 'ab']);
  });

  it('returns 200 if it does not match the message it names, is kept and changes nothing', async () => {
    const id = await acceptMeta();
    const good = post({ id: 'wamid.20', status: 'sent', ours: id });
    const count = (await kept('meta')).length;
    const ofAnotherNumber = good.replace(phoneNumberId, '106540352242922');
    const ofNoNumber = good.replace(`"phone_number_id":"${phoneNumberId}"`, '');
    const ofTwilio = post({ id: 'wamid.20', status: 'read', ours: await accept() });
    for (const body of [ofAnotherNumber, ofNoNumber, ofTwilio]) assert.equal((await postMeta(body)).status, 200);
    assert.deepEqual((await kept('meta')).slice(count), [ofAnotherNumber, ofNoNumber, ofTwilio]);
    assert.deepEqual(await chatTimeline(service.pool, id), ['queued']);
    await postMeta(good);
    const ofAnotherMessage = post({ id: 'wamid.21', status: 'read', ours: id });
    await postMeta(ofAnotherMessage);
    assert.deepEqual(await chatTimeline(service.pool, id), ['queued', 'sent']);
    assert.equal((await kept('meta')).at(-1), ofAnotherMessage);
  });

  it('returns 413 for more than 3 MB', async () => {
    const raw = Buffer.alloc(3 * 1_048_576 + 1, 'x');
    assertRefused(await postMeta(raw), 413, 'payload_too_large');
  });
});

it('callbacks return 503 while the database is down', async (t) => {
  const pool = makePool('postgres://user@127.0.0.1:1/none', 'test', 1, () => undefined);
  const down = await startService({ publicUrl: PUBLIC_URL, pool });
  t.after(async () => {
    await down.close();
    await pool.end();
  });
  const id = newId('wa');
  const path = `/callbacks/twilio?m=${id}`;
  const twilio = twilioRequest(PUBLIC_URL + path, form('sent'));
  assertRefused(await down.call('POST', path, twilio), 503, 'unavailable');
  const meta = metaRequest(post({ id: 'wamid.8', status: 'sent', ours: id }));
  assertRefused(await down.call('POST', '/callbacks/meta', meta), 503, 'unavailable');
});
