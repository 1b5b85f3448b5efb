import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ChatContent, OutgoingChat } from '../../src/domain/chat/chat.ts';
import type { ChatOutcome } from '../../src/providers/chat-provider.ts';
import { fetchTwilioTemplates } from '../../src/providers/twilio/templates.ts';
import { ACCOUNT, chat, chatSimulator, twilioAt } from './chat.ts';
import { answering, closedPort, httpServer } from './servers.ts';

const link = 'https://files.example.com/a.png';
const hello = { name: 'hello_world', language: 'en_US' };
const order = {
  name: 'order_update',
  language: 'en_US',
  components: [
    { type: 'header', parameters: [{ type: 'text', text: '7' }] },
    { type: 'body', parameters: ['Ada', 'Monday'].map((text) => ({ type: 'text', text })) },
    { type: 'button', sub_type: 'url', index: '0', parameters: [{ type: 'text', text: 'seven' }] },
  ],
};

const ANY_TIME = { fromMs: 0, untilMs: Infinity };
const minuteFrom = (fromMs: number) => ({ fromMs, untilMs: fromMs + 60_000 });

function sid(outcome: ChatOutcome): string {
  assert.equal(outcome.kind, 'sent', JSON.stringify(outcome));
  return (outcome as { messageId: string }).messageId;
}

describe('a message that Twilio may have', { concurrency: true }, () => {
  for (const [name, content] of Object.entries({
    text: { text: ' Two\nlines 😀 ' },
    'image with caption': { image: { link, caption: 'x' } },
    'template without variables': { template: hello },
    'template with variables': { template: order },
  } satisfies Record<string, Partial<ChatContent>>)) {
    test(`is found by its content: ${name}`, async (t) => {
      const { chatUrl } = await chatSimulator(t);
      const twilio = twilioAt(chatUrl);
      const message = chat(content);
      const { to } = message;
      const period = minuteFrom(Date.now());
      assert.equal(await twilio.find?.(message, period), undefined);
      await twilio.send(chat({ text: 'Something else' }, { to }));
      await twilio.send(chat(content));
      await twilio.send(chat(content, { to, from: '+4915100000009' }));
      const other = await twilio.find?.(message, period);
      // A template without variables has nothing to compare: the caller excludes messages of others.
      assert.equal(other === undefined, name !== 'template without variables');
      const expected = sid(await twilio.send(message));
      const isTaken = async (id: string) => id !== expected;
      assert.equal(await twilio.find?.(message, period, isTaken), expected);
      for (const otherMs of [-61_000, 60_000])
        assert.equal(await twilio.find?.(message, minuteFrom(period.fromMs + otherMs)), undefined);
    });
  }

  test('is the oldest that belongs to no other message', async (t) => {
    const { chatUrl } = await chatSimulator(t);
    const twilio = twilioAt(chatUrl);
    const first = chat();
    const same: OutgoingChat[] = [
      first,
      chat({ text: 'Hi.' }, { to: first.to }),
      chat({ text: 'Hi.' }, { to: first.to }),
    ];
    const period = minuteFrom(Date.now());
    const sids: string[] = [];
    for (const message of same) sids.push(sid(await twilio.send(message)));
    assert.equal(await twilio.find?.(first, period), sids[0]);
    assert.equal(await twilio.find?.(first, period, async (id) => id === sids[0]), sids[1]);
    assert.equal(await twilio.find?.(first, period, async () => true), undefined);
  });

  test('is not the text of another ambiguous message if it is a template', async (t) => {
    const { chatUrl } = await chatSimulator(t);
    const twilio = twilioAt(chatUrl);
    for (const template of [{ template: hello }, { template: order }]) {
      const message = chat(template);
      const other = chat({ text: 'Monday: Ada comes.' }, { to: message.to });
      const period = minuteFrom(Date.now());
      await twilio.send(other);
      const isTaken = async (_: string, alsoFits?: (message: OutgoingChat) => boolean) => alsoFits?.(other) ?? false;
      assert.equal(await twilio.find?.(message, period, isTaken), undefined);
      const expected = sid(await twilio.send(message));
      assert.equal(await twilio.find?.(message, period, isTaken), expected);
    }
  });

  test('is not that of another ambiguous message with another file or without one', async (t) => {
    const { chatUrl } = await chatSimulator(t);
    const twilio = twilioAt(chatUrl);
    const otherLink = 'https://files.example.com/b.png';
    for (const [content, other] of [
      [{ document: { link } }, { document: { link: otherLink } }],
      [{ image: { link } }, { image: { link: otherLink } }],
      [{ image: { link, caption: 'x' } }, { text: 'x' }],
      [{ text: 'x' }, { image: { link, caption: 'x' } }],
    ] satisfies [Partial<ChatContent>, Partial<ChatContent>][]) {
      const message = chat(content);
      const { to } = message;
      const period = minuteFrom(Date.now());
      const findBeside = (ambiguous: OutgoingChat) =>
        twilio.find?.(message, period, async (_, alsoFits) => alsoFits?.(ambiguous) ?? false);
      const accepted = sid(await twilio.send(chat(other, { to })));
      assert.equal(await findBeside(chat(other, { to })), undefined, JSON.stringify(other));
      // Beside an equal message, either may take it.
      assert.equal(await findBeside(chat(content, { to })), accepted);
    }
  });

  test('is not found while the list of Twilio lags, and the search fails while Twilio is unreachable', async (t) => {
    const { chatUrl, behave } = await chatSimulator(t);
    const twilio = twilioAt(chatUrl);
    const message = chat();
    await twilio.send(message);
    await behave({ search_lag_ms: 60_000 });
    assert.equal(await twilio.find?.(message, ANY_TIME), undefined);
    const away = twilioAt(`http://127.0.0.1:${await closedPort()}`);
    await assert.rejects(async () => away.find?.(message, ANY_TIME));
    await assert.rejects(async () => away.report?.(message, 'SM1'));
    const broken = twilioAt(await httpServer(t, answering({ status: 500 })));
    await assert.rejects(async () => broken.find?.(message, ANY_TIME));
  });
});

describe('a report that is fetched', () => {
  const record = (fields: object) =>
    answering({ body: { sid: 'SM1', error_code: null, error_message: null, ...fields } });
  for (const [fields, report] of [
    [{ status: 'queued' }, { change: 'sent', dedupeKey: 'SM1 sent' }],
    [{ status: 'delivered' }, { change: 'delivered', dedupeKey: 'SM1 delivered' }],
    [{ status: 'read' }, { change: 'read', dedupeKey: 'SM1 read' }],
    [
      { status: 'undelivered', error_code: 63016 },
      {
        change: 'failed',
        dedupeKey: 'SM1 failed',
        error:
          'Twilio could not deliver it: the recipient has not written for 24 hours: only a template may be sent (error 63016).',
        errorCode: '63016',
      },
    ],
    [{ status: 'receiving' }, undefined],
  ] as const) {
    test(`${fields.status} is ${report?.change ?? 'nothing new'}`, async (t) => {
      const message = chat();
      const found = await twilioAt(await httpServer(t, record(fields))).report?.(message, 'SM1');
      assert.deepEqual(found, report && { messageId: message.id, providerMessageId: 'SM1', ...report });
    });
  }
});

describe('the templates of an account', () => {
  const account = (baseUrl: string) => ({ ...ACCOUNT, baseUrl });

  test('are read with the order of their variables: header, body, buttons', async (t) => {
    const card = {
      actions: [{ type: 'URL', title: 't', url: 'https://example.com/{{2}}' }],
      body: 'Hello {{name}}, {{ 5 }} and {{name}}',
      header_text: 'No. {{9}}',
    };
    const variables = { 2: 'x', 5: 'x', 9: 'x', name: 'x', unseen: 'x' };
    const content = (sid: string, language: string, approval_requests: object | null, fields: object = {}) => {
      return { sid, language, variables: {}, types: {}, approval_requests, ...fields };
    };
    const contents = [
      content('HX1', 'de', { name: 'card', status: 'approved' }, { variables, types: { 'whatsapp/card': card } }),
      content('HX2', 'de', { name: 'twice', status: 'rejected' }),
      content('HX3', 'de', { name: 'twice', status: 'approved' }),
      content('HX4', 'fr', { name: 'twice', status: 'paused' }, { variables: null, types: null }),
      content('HX5', 'de', {}),
      content('HX6', 'de', null),
    ];
    const url = await httpServer(t, answering({ body: { contents, meta: { key: 'contents', next_page_url: null } } }));
    const templates = await fetchTwilioTemplates(account(url));
    assert.deepEqual(
      templates.map(({ contentSid, name, language, variables }) => [contentSid, name, language, variables.join()]),
      [
        ['HX1', 'card', 'de', '9,name,5,2,unseen'],
        ['HX3', 'twice', 'de', ''],
        ['HX4', 'twice', 'fr', ''],
      ],
    );
  });

  test('are all of its pages', async (t) => {
    const urls: string[] = [];
    const url = await httpServer(t, (request, response) => {
      urls.push(request.url ?? '');
      const name = `t${urls.length}`;
      const next = urls.length < 3 ? `https://content.twilio.com/v1/ContentAndApprovals?Page=${urls.length}` : null;
      const contents = [{ sid: 'HX1', language: 'de', variables: {}, types: {}, approval_requests: { name } }];
      response.end(JSON.stringify({ contents, meta: { key: 'contents', next_page_url: next } }));
    });
    const templates = await fetchTwilioTemplates(account(url));
    assert.deepEqual(
      templates.map(({ name }) => name),
      ['t1', 't2', 't3'],
    );
    assert.deepEqual(urls.slice(1), ['/v1/ContentAndApprovals?Page=1', '/v1/ContentAndApprovals?Page=2']);
  });
});
