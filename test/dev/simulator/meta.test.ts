import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { isMetaSignature, readMetaCallback } from '../../../src/providers/meta/callbacks.ts';
import { ACCESS_TOKEN, chat, chatSimulator, metaAt, PHONE_NUMBER_ID } from '../../providers/chat.ts';
import { receiver, awaitCallbacks } from './receiver.ts';

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
  for (const [change, code] of [
    [{ to: 'nobody' }, 100],
    [{ text: undefined }, 131008],
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

  test('requires the token', async (t) => {
    const { chatUrl } = await chatSimulator(t);
    const { status, body } = await post(chatUrl + MESSAGES, text, 'wrong');
    assert.deepEqual([status, (body['error'] as { code: number }).code], [401, 190]);
    const any = await chatSimulator(t, { metaToken: null });
    assert.equal((await post(any.chatUrl + MESSAGES, text, 'any')).status, 200);
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
      await awaitCallbacks(hits, changes.length);
      const reports = hits.flatMap(({ body }) => readMetaCallback(body));
      assert.deepEqual(reports.map(({ change }) => change).sort(), changes.toSorted());
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
});
