import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { isMetaSignature, readMetaCallback } from '../../../src/providers/meta/callbacks.ts';
import { ACCESS_TOKEN, chat, chatSimulator, metaAt, PHONE_NUMBER_ID } from '../../providers/chat.ts';
import { receiver, settled } from './chat.ts';

const SECRET = 'app-secret';
const MESSAGES = `/v25.0/${PHONE_NUMBER_ID}/messages`;
const text = { messaging_product: 'whatsapp', to: '+49 151 12345678', type: 'text', text: { body: 'Hi.' } };

async function post(url: string, body: unknown, token = ACCESS_TOKEN) {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

/** A simulator whose reports are received. */
async function reporting(t: TestContext, report = 20) {
  const { hits, url } = await receiver(t);
  const metaCallback = { url: `${url}/callbacks/meta`, appSecret: SECRET };
  return { hits, ...(await chatSimulator(t, { metaCallback, times: { report } })) };
}

describe('Meta’s API', { concurrency: true }, () => {
  test('answers with the message’s id', async (t) => {
    const { chatUrl, inbox } = await chatSimulator(t);
    const { status, body } = await post(chatUrl + MESSAGES, text);
    const id = (await inbox())[0]?.id;
    assert.match(id ?? '', /^wamid\./);
    assert.equal(status, 200);
    assert.deepEqual(body, {
      messaging_product: 'whatsapp',
      contacts: [{ input: '+4915112345678', wa_id: '4915112345678' }],
      messages: [{ id, message_status: 'accepted' }],
    });
  });

  for (const [change, code] of [
    [{ messaging_product: 'x' }, 100],
    [{ type: 'audio' }, 100],
    [{ to: 'nobody' }, 100],
    [{ text: undefined }, 131008],
    [{ text: { body: '' } }, 100],
    [{ text: { body: 'x'.repeat(4_097) } }, 100],
    [{ type: 'image', image: { link: 'https://a.example/', caption: 'x'.repeat(1_025) } }, 100],
    [{ type: 'template', template: { name: 'n', language: 'en' } }, 100],
  ] as const) {
    test(`refuses ${JSON.stringify(change).slice(0, 60)} with ${code}`, async (t) => {
      const { chatUrl, inbox } = await chatSimulator(t);
      const { status, body } = await post(chatUrl + MESSAGES, { ...text, ...change });
      assert.equal(status, 400);
      const { error } = body as { error: { code: number; message: string; type: string } };
      assert.deepEqual([error.code, error.type], [code, 'OAuthException']);
      assert.ok(error.message.startsWith(`(#${code}) `));
      assert.deepEqual(await inbox(), []);
    });
  }

  test('lets in who knows the token', async (t) => {
    const { chatUrl } = await chatSimulator(t);
    const { status, body } = await post(chatUrl + MESSAGES, text, 'wrong');
    assert.deepEqual([status, (body['error'] as { code: number }).code], [401, 190]);
    const any = await chatSimulator(t, { metaToken: null });
    assert.equal((await post(any.chatUrl + MESSAGES, text, 'any')).status, 200);
  });

  test('answers what is no JSON in its own way', async (t) => {
    const { chatUrl } = await chatSimulator(t);
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${ACCESS_TOKEN}` };
    const answer = await fetch(chatUrl + MESSAGES, { method: 'POST', headers, body: '{' });
    const { error } = (await answer.json()) as { error: { code: number } };
    assert.deepEqual([answer.status, error.code], [400, 100]);
  });
});

describe('a message by Meta', { concurrency: true }, () => {
  for (const [to, changes] of Object.entries({
    '+49151123450000': ['sent', 'delivered'],
    '+49151123450001': ['failed'],
    '+49151123450002': ['sent', 'delivered', 'read'],
  })) {
    test(`to ${to} is reported as ${changes.join(', ')}, signed over its bytes, with our id`, async (t) => {
      const { hits, chatUrl } = await reporting(t, 60);
      const message = chat({ text: 'Grüße' }, { to });
      const outcome = await metaAt(chatUrl).send(message);
      assert.ok(outcome.kind === 'sent');
      await settled(hits, changes.length);
      const reports = hits.flatMap(({ body }) => readMetaCallback(body));
      assert.deepEqual(
        reports.map(({ change }) => change),
        changes,
      );
      for (const report of reports) {
        assert.deepEqual([report.messageId, report.providerMessageId], [message.id, outcome.messageId]);
        assert.equal(report.errorCode, report.change === 'failed' ? '131026' : undefined);
      }
      for (const { body, headers, url } of hits) {
        assert.equal(url, '/callbacks/meta');
        assert.equal(isMetaSignature(SECRET, body, String(headers['x-hub-signature-256'])), true);
        assert.match(body.toString(), /^[\x20-\x7e]+$/);
      }
    });
  }

  test('is now and then reported in one post, the later state first', async (t) => {
    const { hits, chatUrl } = await reporting(t);
    for (let i = 0; i < 6; i++) await metaAt(chatUrl).send(chat());
    await settled(hits, 10);
    const posts = hits
      .map(({ body }) =>
        readMetaCallback(body)
          .map(({ change }) => change)
          .join(),
      )
      .sort();
    assert.deepEqual(posts, [
      ...Array.from({ length: 4 }, () => 'delivered'),
      ...Array.from({ length: 2 }, () => 'delivered,sent'),
      ...Array.from({ length: 4 }, () => 'sent'),
    ]);
  });

  test('is reported repeatedly and in any order when the switches say so', async (t) => {
    const { hits, chatUrl, behave } = await reporting(t);
    await behave({ repeat_reports: 1, shuffle_reports: true });
    await metaAt(chatUrl).send(chat({ text: 'x' }, { to: '+49151123450002' }));
    await settled(hits, 6);
    const changes = hits.flatMap(({ body }) => readMetaCallback(body).map(({ change }) => change)).sort();
    assert.equal(changes.join(), 'delivered,delivered,read,read,sent,sent');
  });

  test('is reported again to who could not take it', async (t) => {
    const { hits, url } = await receiver(t, 503, 0, 401, 200);
    const { chatUrl } = await chatSimulator(t, { metaCallback: { url, appSecret: SECRET } });
    await metaAt(chatUrl).send(chat({ text: 'x' }, { to: '+49151123450001' }));
    await settled(hits, 4);
    assert.equal(hits.length, 4);
  });

  test('to a number ending in 0003 fails once, in 0004 always', async (t) => {
    const { chatUrl, inbox } = await chatSimulator(t);
    const codes = async (to: string) => {
      const message = chat({ text: 'x' }, { to });
      const outcomes = [await metaAt(chatUrl).send(message), await metaAt(chatUrl).send(message)];
      return outcomes.map((outcome) => ('code' in outcome ? outcome.code : outcome.kind));
    };
    assert.deepEqual(await codes('+49151123450003'), ['131000', 'sent']);
    assert.deepEqual(await codes('+49151123450004'), ['131000', '131000']);
    assert.equal((await inbox()).length, 1);
  });

  test('obeys the switches', async (t) => {
    const { chatUrl, behave, inbox } = await chatSimulator(t);
    const outcome = () => metaAt(chatUrl).send(chat());
    await behave({ fail_next: 1, status: 400, error_code: 131_047 });
    assert.deepEqual(await outcome(), {
      kind: 'refused',
      detail: 'Meta refused it: A switch of the simulator asks for this (error 131047).',
      code: '131047',
    });
    await behave({ fail_next: 1, status: 503, retry_after: 1 });
    assert.deepEqual(Object.values(await outcome()).slice(-2), ['131016', 1_000]);
    assert.deepEqual(await inbox(), []);
    await behave({ garbage: 1 });
    assert.equal((await outcome()).kind, 'unknown');
  });
});
