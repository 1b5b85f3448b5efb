import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { connect as connectSocket, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { chatSeal } from '../../src/accounts/chat-numbers.ts';
import { makeMediaLinks } from '../../src/domain/file-links.ts';
import { newId } from '../../src/lib/ids.ts';
import { Unfetchable } from '../../src/public-fetch/unfetchable.ts';
import type { StoredMedia } from '../../src/store/chat/inbound.ts';
import { secondsFromNow } from '../../src/store/emails/attachments.ts';
import { connect } from '../store/chats.ts';
import { eventually } from '../support/eventually.ts';
import { metaRequest, metaSignature, twilioRequest } from './provider-callbacks.ts';
import { type Answer, assertRefused, CHAT_CALLBACKS, SECRET_KEY, useService } from './service.ts';

const PUBLIC_URL = 'https://mail.example/base';
const INBOUND = '/callbacks/twilio/inbound';

let fetched: StoredMedia[] = [];
let releases = 0;
/** Delivers the media whose reference is `slow`. */
const deliverSlow = new EventEmitter();
const service = await useService({
  publicUrl: PUBLIC_URL,
  fetchMedia: async (media) => {
    fetched.push(media);
    if (media.reference === 'gone') throw new Unfetchable('its server answers 404');
    if (media.reference === 'slow') await once(deliverSlow, 'now');
    return { content: Buffer.from('a picture'), release: () => releases++ };
  },
});
const ours = await service.organization();
const theirs = await service.organization();
for (const organization of [ours, theirs]) {
  const webhook = { url: 'https://example.com/hook', events: ['chatapp.received'] };
  assert.equal((await organization.call('POST', '/v1/webhooks', { json: webhook })).status, 201);
}
const { number } = await connect(service.pool, ours.id);
const { id: metaId } = await connect(service.pool, ours.id, 'meta');
const { rows } = await service.pool.query<{ phone_number_id: string }>(
  'SELECT phone_number_id FROM chat_numbers WHERE id = $1',
  [metaId],
);
const phoneNumberId = rows[0]?.phone_number_id ?? '';

async function events(orgId = ours.id): Promise<Record<string, unknown>[]> {
  const found = await service.pool.query<{ data: Record<string, unknown> }>(
    `SELECT data FROM webhook_events WHERE org_id = $1 AND type = 'chatapp.received' ORDER BY id`,
    [orgId],
  );
  return found.rows.map(({ data }) => data);
}

async function kept(provider: string): Promise<number> {
  const { rows: found } = await service.pool.query('SELECT FROM provider_callbacks WHERE provider = $1', [provider]);
  return found.length;
}

let count = 0;
function form(fields: Record<string, string> = {}): Record<string, string> {
  const sid = `SM${String(++count).padStart(32, '0')}`;
  return {
    MessageSid: sid,
    AccountSid: `AC${'0'.repeat(32)}`,
    From: 'whatsapp:+14165550123',
    To: `whatsapp:${number}`,
    SmsStatus: 'received',
    ProfileName: 'Ada',
    Body: 'Hi.',
    NumMedia: '0',
    ...fields,
  };
}

function postTwilio(
  fields: Record<string, string>,
  { token = CHAT_CALLBACKS.twilioAuthToken, sent = fields, path = INBOUND, signed = INBOUND } = {},
): Promise<Answer> {
  const { headers } = twilioRequest(PUBLIC_URL + signed, fields, token);
  return service.call('POST', path, { raw: new URLSearchParams(sent).toString(), headers });
}

function metaBody(fields: object, statuses: object[] = []): string {
  const message = {
    from: '14165550123',
    from_user_id: 'CA.1',
    id: `wamid.${++count}`,
    timestamp: '1773000000',
    ...fields,
  };
  const metadata = { phone_number_id: phoneNumberId };
  const value = { messaging_product: 'whatsapp', metadata, contacts: [], messages: [message], statuses };
  return JSON.stringify({ entry: [{ changes: [{ field: 'messages', value }] }] });
}

function postMeta(body: string, secret?: string): Promise<Answer> {
  return service.call('POST', '/callbacks/meta', metaRequest(body, metaSignature(body, secret)));
}

const TEXT = { type: 'text', text: { body: 'Hi.' } };

describe('POST /callbacks/twilio/inbound', () => {
  it('records a message, answers with TwiML and wakes the relay', async () => {
    const wakes = service.wakes();
    const answer = await postTwilio(form());
    assert.deepEqual([answer.status, answer.text], [200, '<Response/>']);
    assert.match(String(answer.headers['content-type']), /^text\/xml/);
    const { from, to, name, text } = (await events()).at(-1) ?? {};
    assert.deepEqual([from, to, name, text], ['+14165550123', number, 'Ada', 'Hi.']);
    assert.ok(service.wakes() > wakes);
  });

  it('is recorded at /callbacks/twilio too', async () => {
    const path = '/callbacks/twilio';
    const answer = await postTwilio(form({ Body: 'To the other address.' }), { path, signed: path });
    assert.deepEqual([answer.status, answer.text], [200, '<Response/>']);
    assert.equal((await events()).at(-1)?.['text'], 'To the other address.');
    const wrong = await postTwilio(form(), { path, signed: path, token: 'another token' });
    assertRefused(wrong, 401, 'unauthorized');
  });

  it('returns 401 for a changed body, a wrong token and no signature, and records nothing', async () => {
    const before = (await events()).length;
    for (const answer of [
      await postTwilio(form(), { sent: form({ Body: 'Other.' }) }),
      await postTwilio(form(), { token: 'another token' }),
      await postTwilio(form(), { path: `${INBOUND}?x=1` }),
      await service.call('POST', INBOUND, { raw: new URLSearchParams(form()).toString() }),
      await ours.call('POST', INBOUND, { raw: new URLSearchParams(form()).toString() }),
    ]) {
      assertRefused(answer, 401, 'unauthorized');
    }
    assert.equal((await events()).length, before);
  });

  it('requires the signature of the token that the receiving number has itself', async () => {
    const id = newId('num');
    const sealed = chatSeal(SECRET_KEY).close(Buffer.from('its own token'), id);
    const own = await connect(service.pool, theirs.id, 'twilio', sealed, id);
    const fields = form({ To: `whatsapp:${own.number}` });
    assertRefused(await postTwilio(fields), 401, 'unauthorized');
    assert.equal((await postTwilio(fields, { token: 'its own token' })).status, 200);
    assertRefused(await postTwilio(form(), { token: 'its own token' }), 401, 'unauthorized');
    assert.equal((await events(theirs.id)).length, 1);
  });

  it('keeps what is for no connected number', async () => {
    const [before, copies] = [(await events()).length, await kept('twilio')];
    assert.equal((await postTwilio(form({ To: 'whatsapp:+12025559999' }))).status, 200);
    assert.equal((await postTwilio(form({ From: 'whatsapp:you' }))).status, 200);
    assert.deepEqual([(await events()).length, await kept('twilio')], [before, copies + 2]);
  });
});

describe('POST /callbacks/meta', () => {
  it('records messages of users, also beside reports', async () => {
    const [before, copies] = [(await events()).length, await kept('meta')];
    assert.equal((await postMeta(metaBody(TEXT))).status, 200);
    assert.equal(await kept('meta'), copies);
    assert.equal((await postMeta(metaBody(TEXT, [{ id: 'wamid.x', status: 'read' }]))).status, 200);
    assert.equal((await events()).length, before + 2);
    assert.equal(await kept('meta'), copies + 1, 'the report is about no message of ours');
  });

  it('records a message that is posted twice once', async () => {
    const before = (await events()).length;
    const body = metaBody(TEXT);
    await Promise.all([postMeta(body), postMeta(body)]);
    assert.equal((await events()).length, before + 1);
  });

  it('returns 401 for another signature, and records nothing', async () => {
    const before = (await events()).length;
    assertRefused(await postMeta(metaBody(TEXT), 'another secret'), 401, 'unauthorized');
    assert.equal((await events()).length, before);
  });

  it('keeps what is for no connected number', async () => {
    const copies = await kept('meta');
    await service.pool.query('UPDATE chat_numbers SET verified_by = NULL WHERE id = $1', [metaId]);
    assert.equal((await postMeta(metaBody(TEXT))).status, 200);
    await service.pool.query(`UPDATE chat_numbers SET verified_by = 'operator' WHERE id = $1`, [metaId]);
    assert.equal(await kept('meta'), copies + 1);
  });
});

describe('GET /v1/chatapp/received/:id/download', () => {
  const image = (id: string) => ({ type: 'image', image: { id, mime_type: 'image/png', caption: 'Look' } });

  async function linkOf(media: string): Promise<URL> {
    await postMeta(metaBody(image(media)));
    const event = (await events()).at(-1);
    const link = (event?.['media'] as { url: string }).url;
    assert.ok(link.startsWith(`${PUBLIC_URL}/v1/chatapp/received/${String(event?.['messageId'])}/download?`));
    return new URL(link);
  }

  const open = ({ pathname, search }: URL) => service.call('GET', pathname.replace('/base', '') + search);

  it('returns the file as a download that browsers do not display', async () => {
    const link = await linkOf('5551');
    fetched = [];
    const answer = await open(link);
    assert.deepEqual([answer.status, answer.text], [200, 'a picture']);
    assert.match(String(answer.headers['content-disposition']), /^attachment; /);
    assert.deepEqual(
      ['content-type', 'x-content-type-options', 'cache-control'].map((name) => answer.headers[name]),
      ['image/png', 'nosniff', 'private, no-store'],
    );
    assert.deepEqual(
      fetched.map(({ reference, number: { id, provider } }) => [reference, id, provider]),
      [['5551', metaId, 'meta']],
    );
  });

  it('releases the memory of the file when the response has ended', async () => {
    releases = 0;
    await open(await linkOf('5557'));
    await eventually('the file is released', () => releases === 1, 5_000);
  });

  it('releases the memory of the file when the client disconnects before the provider delivers it', async () => {
    const { pathname, search } = await linkOf('slow');
    [fetched, releases] = [[], 0];
    const connected = once(service.server, 'connection') as Promise<[Socket]>;
    const client = connectSocket(service.port, '127.0.0.1');
    client.write(`GET ${pathname.replace('/base', '')}${search} HTTP/1.1\r\nHost: a\r\n\r\n`);
    const [socket] = await connected;
    await eventually('the file is requested', () => fetched.length === 1);
    client.destroy();
    if (!socket.closed) await once(socket, 'close');
    await setImmediate();
    deliverSlow.emit('now');
    await eventually('the file is released', () => releases === 1, 5_000);
  });

  it('answers HEAD without asking the provider', async () => {
    const { pathname, search } = await linkOf('5558');
    fetched = [];
    const answer = await service.call('HEAD', pathname.replace('/base', '') + search);
    assert.deepEqual([answer.status, answer.text, answer.headers['content-type']], [200, '', 'image/png']);
    assert.equal(answer.headers['content-length'], undefined, 'the size is unknown');
    assert.deepEqual(fetched, []);
  });

  it('returns 404 for a changed link, and asks no provider', async () => {
    const [link, other] = [await linkOf('5552'), await linkOf('5553')];
    fetched = [];
    const { searchParams } = link;
    const changed = (change: (url: URL) => void): URL => {
      const url = new URL(link);
      change(url);
      return url;
    };
    for (const url of [
      changed((each) => (each.pathname = other.pathname)),
      changed((each) => each.searchParams.set('expires', String(Number(searchParams.get('expires')) + 1))),
      changed((each) => each.searchParams.set('signature', `${searchParams.get('signature') ?? ''}A`)),
      changed((each) => each.searchParams.set('signature', '')),
      changed((each) => (each.pathname = each.pathname.replace(/in_\w+/, newId('in')))),
    ]) {
      assertRefused(await open(url), 404, 'not_found');
    }
    assert.deepEqual(fetched, []);
  });

  it('is valid until it expires, by the clock of the database', async () => {
    const { pathname } = await linkOf('5556');
    const id = pathname.split('/').at(-2) ?? '';
    for (const [seconds, status] of [
      [-1, 404],
      [60, 200],
    ] as const) {
      const path = makeMediaLinks(SECRET_KEY).make([id], (await secondsFromNow(service.pool, 0)) + seconds);
      assert.equal((await service.call('GET', path)).status, status, `${seconds} s`);
    }
  });

  it('returns 404 when the number is no longer connected, and 503 when the provider does not deliver it', async () => {
    assertRefused(await open(await linkOf('gone')), 503, 'unavailable');
    const link = await linkOf('5554');
    await service.pool.query('DELETE FROM chat_numbers WHERE id = $1', [metaId]);
    assertRefused(await open(link), 404, 'not_found');
  });
});

describe('a user whose number is in no numbering plan', () => {
  const answer = (to: string, by = ours) => by.call('POST', '/v1/chatapp', { json: { from: number, to, text: 'Re.' } });

  for (const [user, country] of [
    ['+22507080910', 'CI'],
    ['+8812345', 'ZZ'],
  ] as const) {
    it(`can be answered after writing from ${user}, and only then`, async () => {
      assertRefused(await answer(user), 422, 'validation_error', 'to', 'is not a telephone number');
      assert.equal((await postTwilio(form({ From: `whatsapp:${user}`, WaId: user.slice(1) }))).status, 200);
      const sent = await answer(user);
      assert.equal(sent.status, 202, sent.text);
      assert.equal((sent.body as { country: string }).country, country);
      const listed = await ours.call('GET', `/v1/chatapp?to=${encodeURIComponent(user)}`);
      assert.equal((listed.body as { messages: unknown[] }).messages.length, 1);
    });
  }
});
