import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import type { OutgoingChat } from '../../src/domain/chat/chat.ts';
import type { ChatOutcome } from '../../src/providers/chat-provider.ts';
import { ACCESS_TOKEN, chat, chatSimulator, metaAt, PHONE_NUMBER_ID } from './chat.ts';
import { answering, closedPort, httpServer, recordingServer } from './servers.ts';

/** Sends a message that Meta accepts. @returns the outcome and the requests */
async function posted(t: TestContext, message: OutgoingChat) {
  const { url, requests } = await recordingServer(t, {
    body: { messaging_product: 'whatsapp', messages: [{ id: 'wamid.1' }] },
  });
  const outcome = await metaAt(`${url}/`).send(message);
  return { outcome, requests };
}

describe('a request to Meta', { concurrency: true }, () => {
  const link = 'https://files.example.com/a';
  const components = [
    { type: 'body', parameters: [{ type: 'text', text: 'x' }] },
    { type: 'carousel', cards: [1.5, null] },
  ];
  for (const [name, content, payload] of [
    ['a text with a preview', { text: 'x', preview_url: true }, { preview_url: true, body: 'x' }],
    ['an image with its caption', { image: { link, caption: 'own' }, text: 'other' }, { link, caption: 'own' }],
    ['an image with the text as its caption', { image: { link }, text: 'other' }, { link, caption: 'other' }],
    [
      'a document with caption and name',
      { document: { link, caption: 'c', filename: 'a.pdf' } },
      { link, caption: 'c', filename: 'a.pdf' },
    ],
    ['a template', { template: { name: 'n', language: 'en_US' } }, { name: 'n', language: { code: 'en_US' } }],
    [
      'a template with its components as they are',
      { template: { name: 'n', language: { code: 'de' }, components } },
      { name: 'n', language: { code: 'de' }, components },
    ],
  ] as const) {
    test(name, async (t) => {
      const message = chat(content);
      const { outcome, requests } = await posted(t, message);
      assert.deepEqual(outcome, { kind: 'sent', messageId: 'wamid.1' });
      assert.equal(requests.length, 1);
      const [{ method, url, headers, body } = assert.fail()] = requests;
      assert.deepEqual([method, url], ['POST', `/v25.0/${PHONE_NUMBER_ID}/messages`]);
      assert.equal(headers.authorization, `Bearer ${ACCESS_TOKEN}`);
      assert.deepEqual(JSON.parse(body.toString()), {
        messaging_product: 'whatsapp',
        recipient_type: 'individual',
        to: message.to,
        type: message.type,
        [message.type]: payload,
        biz_opaque_callback_data: message.id,
      });
    });
  }
});

describe('the limits of Meta', () => {
  const meta = metaAt('http://127.0.0.1:9');
  const link = 'https://files.example.com/a';
  for (const [name, content, problem] of [
    ['4,096 characters', { text: '😀'.repeat(4_096), preview_url: true }, undefined],
    ['4,097 characters', { text: 'x'.repeat(4_097) }, 'WhatsApp accepts at most 4096 characters of text, not 4097.'],
    ['a caption of 1,024', { document: { link, filename: 'a.pdf' }, text: 'x'.repeat(1_024) }, undefined],
    [
      'a caption of 1,025',
      { image: { link, caption: 'x'.repeat(1_025) } },
      'WhatsApp accepts at most 1024 characters of a caption, not 1025.',
    ],
    ['any template', { template: { name: 'n', language: 'en', components: [{ type: 'carousel' }] } }, undefined],
  ] as const) {
    test(`${name}: ${problem ? 'refused with a reason' : 'accepted'}`, () => {
      assert.equal(meta.refusal(chat(content)), problem);
    });
  }
});

describe('an answer', { concurrency: true }, () => {
  const errorOf = (code: number, fields: object = {}) => ({
    error: { message: `(#${code}) No`, type: 'OAuthException', code, fbtrace_id: 'x', ...fields },
  });
  const KINDS: Readonly<Record<string, readonly number[]>> = {
    busy: [1, 2, 4, 80007, 130429, 131000, 131016, 131056, 133004],
    refused: [
      100, 130472, 131008, 131009, 131021, 131026, 131047, 131049, 131050, 131051, 131052, 131053, 132000, 132001,
      132005, 132007, 132012, 132015, 132016, 999_999,
    ],
    account: [0, 3, 10, 190, 200, 299, 368, 131031, 131042, 133010],
  };
  for (const [kind, codes] of Object.entries(KINDS)) {
    test(`with code ${codes.join(', ')} is ${kind}`, async (t) => {
      for (const code of codes) {
        const answer = answering({ status: 400, body: errorOf(code, { error_data: { details: 'It says why.' } }) });
        const outcome = await metaAt(await httpServer(t, answer)).send(chat());
        const what = kind === 'refused' ? 'Meta refused it' : 'Meta answered 400';
        assert.deepEqual(outcome, { kind, detail: `${what}: It says why (error ${code}).`, code: String(code) });
      }
    });
  }

  test('for an unknown number is about our settings', async (t) => {
    const answer = answering({ status: 400, body: errorOf(100, { error_subcode: 33 }) });
    assert.deepEqual(await metaAt(await httpServer(t, answer)).send(chat()), {
      kind: 'account',
      detail: 'Meta answered 400: No (error 100).',
      code: '100',
    });
  });

  for (const [status, body, kind] of [
    [429, '', 'busy'],
    [503, '<html>', 'busy'],
    [500, errorOf(7_777), 'busy'],
    [500, '<html>', 'unknown'],
    [408, '', 'unknown'],
    [400, '<html>', 'account'],
    [401, errorOf(7_777), 'account'],
    [404, '', 'account'],
    [302, '', 'account'],
    [200, errorOf(131_026), 'refused'],
    [200, '', 'unknown'],
    [200, '{"messages":[]}', 'unknown'],
    [200, '{"messages":{"0":{"id":"x"}}}', 'unknown'],
  ] as const) {
    const what = typeof body === 'string' ? body || 'nothing' : JSON.stringify(body).slice(0, 40);
    test(`of ${status} with ${what} is ${kind}`, async (t) => {
      const outcome = await metaAt(await httpServer(t, answering({ status, body }))).send(chat());
      assert.equal(outcome.kind, kind);
    });
  }

  test('with Retry-After keeps it', async (t) => {
    const answer = answering({ status: 429, body: errorOf(130_429), headers: { 'retry-after': '3' } });
    assert.deepEqual(await metaAt(await httpServer(t, answer)).send(chat()), {
      kind: 'busy',
      detail: 'Meta answered 429: No (error 130429).',
      code: '130429',
      afterMs: 3_000,
    });
  });
});

test('a refused connection is busy, a broken one unknown', { concurrency: true }, async (t) => {
  const summary = (outcome: ChatOutcome) => [outcome.kind, 'detail' in outcome && outcome.detail];
  const nowhere = metaAt(`http://127.0.0.1:${await closedPort()}`);
  assert.deepEqual(summary(await nowhere.send(chat())), ['busy', 'Meta could not be reached: connection refused.']);
  const { chatUrl, behave, inbox } = await chatSimulator(t);
  for (const [behaviour, detail, arrived] of [
    [{ reset_before_accept: 1 }, 'connection lost', 0],
    [{ reset_after_accept: 1 }, 'connection lost', 1],
    [{ hang: 1 }, 'no answer in time', 2],
  ] as const) {
    await behave(behaviour);
    assert.deepEqual(summary(await metaAt(chatUrl, 1).send(chat())), ['unknown', `Meta did not answer: ${detail}.`]);
    assert.equal((await inbox()).length, arrived);
  }
});
