import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chat, chatSimulator, FROM, metaAt, PHONE_NUMBER_ID, twilioAt } from '../../providers/chat.ts';

const TO = '+4915112345678';
const link = 'https://files.example.com/a.png';
const components = [
  { type: 'header', parameters: [{ type: 'text', text: '7' }] },
  { type: 'body', parameters: ['Ada', 'Monday'].map((text) => ({ type: 'text', text })) },
  { type: 'button', sub_type: 'url', index: '0', parameters: [{ type: 'text', text: 'seven' }] },
];
const template = { name: 'order_update', language: 'en_US', components };

test('shows chat-app messages of every type as the provider received them', async (t) => {
  const { chatUrl, inboxUrl } = await chatSimulator(t);
  const contents = [
    { text: 'Hi.' },
    { image: { link, caption: 'c' } },
    { document: { link: `${link}.pdf` } },
    { template },
  ];
  for (const content of contents) await twilioAt(chatUrl).send(chat(content, { to: TO }));
  for (const content of contents) await metaAt(chatUrl).send(chat(content, { to: TO }));
  const given = { document: { link, caption: 'c', filename: 'a.pdf' } };
  await metaAt(chatUrl).send(chat(given, { to: '+4915112345679' }));

  const expected = [
    { type: 'text', text: 'Hi.', template: null, media: null },
    { type: 'image', text: null, template: null, media: { link, caption: 'c', filename: null } },
    { type: 'document', text: null, template: null, media: { link: `${link}.pdf`, caption: null, filename: null } },
  ];
  const common = (provider: string, from: string) => ({ provider, from, to: TO });
  const variables = { 1: '7', 2: 'Ada', 3: 'Monday', 4: 'seven' };
  const { name, language } = template;
  // The plus as it is typed into an address, and as a program writes it.
  for (const query of [TO, encodeURIComponent(TO)]) {
    const answer = await fetch(`${inboxUrl}/messages?to=${query}`);
    const messages = (await answer.json()) as Record<string, unknown>[];
    const shown = messages.map(({ id, received_at: at, ...fields }) => {
      assert.match(String(id), fields['provider'] === 'meta' ? /^wamid\./ : /^(?:SM|MM)/);
      assert.match(String(at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      return fields;
    });
    assert.deepEqual(shown.reverse(), [
      ...expected.map((fields) => ({ ...common('twilio', FROM), ...fields })),
      {
        ...common('twilio', FROM),
        type: 'template',
        text: null,
        template: { name, language, content_sid: 'HX00000000000000000000000000000002', variables },
        media: null,
      },
      ...expected.map((fields) => ({ ...common('meta', PHONE_NUMBER_ID), ...fields })),
      {
        ...common('meta', PHONE_NUMBER_ID),
        type: 'template',
        text: null,
        template: { ...template, language: { code: language } },
        media: null,
      },
    ]);
  }
});

test('has pages for chat-app messages that do not run their scripts', async (t) => {
  const { chatUrl, inboxUrl, inbox } = await chatSimulator(t);
  const evil = '<script>alert(1)</script>"';
  await twilioAt(chatUrl).send(chat({ text: evil }, { to: TO }));
  await metaAt(chatUrl).send(chat({ image: { link, caption: evil } }, { to: TO }));
  const given = { template: { ...template, name: evil } };
  await metaAt(chatUrl).send(chat(given, { to: TO }));
  const messages = await inbox();
  const paths = ['', `?to=${TO}`, ...messages.map(({ id }) => `/${encodeURIComponent(id)}`)];
  for (const path of paths) {
    const answer = await fetch(inboxUrl + path);
    assert.equal(answer.status, 200, path);
    const page = await answer.text();
    assert.equal(page.includes('<script>'), false, path);
    assert.ok(page.includes('&lt;script&gt;alert(1)&lt;/script&gt;&quot;'), path);
    assert.ok(page.includes(TO), path);
  }
  const list = await (await fetch(inboxUrl)).text();
  for (const { id } of messages) assert.ok(list.includes(`href="/inbox/${encodeURIComponent(id)}"`));
});
