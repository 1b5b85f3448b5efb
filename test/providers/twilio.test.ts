import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import type { OutgoingChat } from '../../src/domain/chat/chat.ts';
import type { ChatOutcome } from '../../src/providers/chat-provider.ts';
import { callbackUrl } from '../../src/providers/twilio/messages.ts';
import { urlOf } from '../../src/providers/twilio/client.ts';
import { ACCOUNT, chat, chatSimulator, FROM, PUBLIC_URL, twilioAt } from './chat.ts';
import { answering, closedPort, httpServer, recordingServer } from './servers.ts';

/** Sends a message that Twilio accepts. @returns the outcome and the requests */
async function posted(t: TestContext, message: OutgoingChat, settings: Parameters<typeof twilioAt>[1] = {}) {
  const { url, requests } = await recordingServer(t, { status: 201, body: { sid: 'SM1', status: 'queued' } });
  const outcome = await twilioAt(url, settings).send(message);
  const forms = requests.map(({ body }) => Object.fromEntries(new URLSearchParams(body.toString())));
  return { outcome, requests, forms };
}

const content = { contentSid: 'HX1', variables: ['1', 'name'] };

describe('a request to Twilio', { concurrency: true }, () => {
  test('a text, by the account’s path and credentials, with our id in the callback', async (t) => {
    const message = chat({ text: 'Größe: 5 & mehr\nx' });
    const { outcome, requests, forms } = await posted(t, message);
    assert.deepEqual(outcome, { kind: 'sent', messageId: 'SM1' });
    const [{ method, url, headers } = assert.fail()] = requests;
    assert.deepEqual([method, url], ['POST', `/2010-04-01/Accounts/${ACCOUNT.accountSid}/Messages.json`]);
    const credentials = Buffer.from(`${ACCOUNT.accountSid}:${ACCOUNT.authToken}`).toString('base64');
    assert.equal(headers.authorization, `Basic ${credentials}`);
    assert.deepEqual(forms, [
      {
        From: `whatsapp:${FROM}`,
        To: `whatsapp:${message.to}`,
        Body: 'Größe: 5 & mehr\nx',
        StatusCallback: `${PUBLIC_URL}/callbacks/twilio?m=${message.id}#rc=5&rp=all`,
      },
    ]);
  });

  const link = 'https://files.example.com/a.png?b=c&d';
  for (const [name, given, form] of [
    ['an image with its caption', { image: { link, caption: 'own' }, text: 'other' }, { MediaUrl: link, Body: 'own' }],
    [
      'an image with the text as its caption',
      { image: { link, caption: null }, text: 'x' },
      { MediaUrl: link, Body: 'x' },
    ],
    [
      'a template by its content, filled in order or by name',
      {
        template: {
          name: 'n',
          language: { code: 'en' },
          components: [
            { type: 'body', parameters: [{ type: 'text', parameter_name: 'name', text: 'Ada' }] },
            { type: 'header', parameters: [{ type: 'text', text: 'Hi' }] },
          ],
        },
      },
      { ContentSid: 'HX1', ContentVariables: '{"1":"Hi","name":"Ada"}' },
    ],
  ] as const) {
    test(name, async (t) => {
      const lookups: string[] = [];
      const contentOf = async (template: string, language: string) => {
        lookups.push(`${template} ${language}`);
        return content;
      };
      const message = chat(given);
      const settings = { contentOf, publicUrl: null };
      assert.equal(twilioAt('http://127.0.0.1:9', settings).refusal(message), undefined);
      const { forms } = await posted(t, message, settings);
      assert.deepEqual(forms[0], { From: `whatsapp:${FROM}`, To: `whatsapp:${message.to}`, ...form });
      assert.deepEqual(lookups, 'template' in given ? ['n en'] : []);
    });
  }

  test('nothing for a template that the number does not have, or that does not fit', async (t) => {
    const components = [{ type: 'body', parameters: [{ type: 'text', text: 'one' }] }];
    const message = chat({ template: { name: 'order', language: 'de', components } });
    for (const [contentOf, outcome] of [
      [
        async () => undefined,
        { kind: 'refused', detail: 'The number has no content at Twilio for the template order in de.' },
      ],
      [async () => content, { kind: 'refused', detail: 'The template has 2 variables at Twilio, not 1.' }],
      [
        () => Promise.reject(new Error('no database')),
        { kind: 'busy', detail: 'The template could not be looked up.' },
      ],
    ] as const) {
      const result = await posted(t, message, { contentOf });
      assert.deepEqual(result, { outcome, requests: [], forms: [] });
    }
  });
});

test('a template whose look-up fails: the account is refused, or the look-up is repeated', async (t) => {
  const message = chat({ template: { name: 'order', language: 'de' } });
  const busy = { kind: 'busy', detail: 'The template could not be looked up.' };
  for (const [answer, outcome] of [
    [
      { status: 401, body: { code: 20003, message: 'Authenticate', status: 401 } },
      { kind: 'account', detail: 'Twilio answered 401: Authenticate (error 20003).', code: '20003' },
    ],
    [{ status: 400, body: { code: 20001, message: 'Invalid parameter', status: 400 } }, busy],
    [{ status: 500 }, busy],
    [{ status: 0 }, busy],
  ] as const) {
    assert.deepEqual(await twilioAt(await httpServer(t, answering(answer))).send(message), outcome);
  }
});

test('a template whose look-up outlasts the claim of the message is not posted to Twilio', async (t) => {
  const { url, requests } = await recordingServer(t, { status: 201, body: { sid: 'SM1', status: 'queued' } });
  let isExpired = false;
  const contentOf = async () => {
    isExpired = true;
    return { contentSid: 'HX1', variables: [] };
  };
  const message = chat({ template: { name: 'n', language: 'en' } });
  const outcome = await twilioAt(url, { contentOf }).send(message, () =>
    isExpired ? { kind: 'busy', detail: 'Too late.' } : undefined,
  );
  assert.deepEqual([outcome, requests], [{ kind: 'busy', detail: 'Too late.' }, []]);
});

test('callback URLs are below the public URL, with or without a slash at its end', () => {
  for (const address of ['https://a.example/x', 'https://a.example/x/'])
    assert.equal(callbackUrl(address, 'wa_1'), 'https://a.example/x/callbacks/twilio?m=wa_1');
});

test('a base URL replaces all hosts of Twilio, one at twilio.com only that of messages', () => {
  const [api, content] = ['https://api.twilio.com/2010/M.json?Page=1', 'https://content.twilio.com/v1/C'];
  for (const [base, ...expected] of [
    [undefined, api, content],
    ['https://api.twilio.com', api, content],
    ['https://api.dublin.ie1.twilio.com', api.replace('api.', 'api.dublin.ie1.'), content],
    ['http://127.0.0.1:1/x/', 'http://127.0.0.1:1/x/2010/M.json?Page=1', 'http://127.0.0.1:1/x/v1/C'],
    ['https://eviltwilio.com', 'https://eviltwilio.com/2010/M.json?Page=1', 'https://eviltwilio.com/v1/C'],
  ] as const) {
    const url = base === undefined ? undefined : new URL(base);
    assert.deepEqual(
      [api, content].map((uri) => urlOf(uri, url).href),
      expected,
    );
  }
});

describe('the limits of Twilio', () => {
  const link = 'https://files.example.com/a.pdf';
  const twilio = twilioAt('http://127.0.0.1:9');
  for (const [name, given, expected] of [
    ['1,600 characters', { text: '😀'.repeat(1_600) }, undefined],
    ['1,601 characters', { text: 'x'.repeat(1_601) }, /at most 1600 characters of text, not 1601/],
    ['a preview', { text: 'x', preview_url: true }, /no preview_url/],
    ['a caption of 1,024', { image: { link, caption: 'x'.repeat(1_024) } }, undefined],
    [
      'a caption of 1,025',
      { image: { link }, text: 'x'.repeat(1_025) },
      /at most 1024 characters of a caption, not 1025/,
    ],
    ['a document with a caption', { document: { link, caption: 'x' } }, /without a caption/],
    ['a document with a name', { document: { link, filename: 'a.pdf' } }, /without a file name/],
    ['a carousel', { template: { name: 'n', language: 'en', components: [{ type: 'carousel' }] } }, /type carousel/],
  ] as const) {
    test(`${name}: ${expected ? 'refused with a reason' : 'accepted'}`, () => {
      const refusal = twilio.refusal(chat(given));
      if (expected === undefined) assert.equal(refusal, undefined);
      else assert.match(refusal ?? '', expected);
    });
  }
});

describe('an answer', { concurrency: true }, () => {
  const KINDS: Readonly<Record<string, readonly number[]>> = {
    busy: [20429, 14107, 63017, 63018, 63038, 30001, 20500, 20503, 30008, 63001, 63012, 63013, 63023],
    refused: [
      11751, 12300, 21211, 21214, 21408, 21610, 21614, 21617, 21656, 63003, 63005, 63014, 63016, 63019, 63021, 63024,
      63027, 63028, 63032, 63040, 63041, 63042, 63049, 63112, 99_999,
    ],
    account: [20003, 20404, 20005, 63007, 63020, 63030, 63051],
  };
  for (const [kind, codes] of Object.entries(KINDS)) {
    test(`with code ${codes.join(', ')} is ${kind}`, async (t) => {
      for (const code of codes) {
        const body = { code, message: 'It says why.', more_info: '', status: 400 };
        const outcome = await twilioAt(await httpServer(t, answering({ status: 400, body }))).send(chat());
        const what = kind === 'refused' ? 'Twilio refused it' : 'Twilio answered 400';
        assert.deepEqual(outcome, { kind, detail: `${what}: It says why (error ${code}).`, code: String(code) });
      }
    });
  }

  for (const [status, code, kind] of [
    [429, undefined, 'busy'],
    [503, undefined, 'busy'],
    [500, 1, 'busy'],
    [400, undefined, 'account'],
    [403, 1, 'account'],
    [307, undefined, 'account'],
  ] as const) {
    test(`with ${status} and ${code === undefined ? 'HTML' : 'an unknown code'} is ${kind}`, async (t) => {
      const body = code === undefined ? '<html>No' : { code, message: 'No.' };
      const outcome = await twilioAt(await httpServer(t, answering({ status, body }))).send(chat());
      assert.equal(outcome.kind, kind);
      assert.ok('detail' in outcome && outcome.detail.startsWith(`Twilio answered ${status}`), JSON.stringify(outcome));
    });
  }

  test('with Retry-After keeps it', async (t) => {
    const body = { code: 20429, message: 'Slow down' };
    const url = await httpServer(t, answering({ status: 429, body, headers: { 'retry-after': '7' } }));
    const outcome = await twilioAt(url).send(chat());
    assert.deepEqual(outcome, {
      kind: 'busy',
      detail: 'Twilio answered 429: Slow down (error 20429).',
      code: '20429',
      afterMs: 7_000,
    });
  });

  for (const body of ['', '<html>', 'null', '{"sid":7}', '{"sid":""}']) {
    test(`of 200 with ${body || 'nothing'} is unknown`, async (t) => {
      const outcome = await twilioAt(await httpServer(t, answering({ body }))).send(chat());
      assert.equal(outcome.kind, 'unknown');
    });
  }
});

describe('a connection', { concurrency: true }, () => {
  const summary = (outcome: ChatOutcome) => [outcome.kind, 'detail' in outcome && outcome.detail];

  test('that is refused is busy', async () => {
    const outcome = await twilioAt(`http://127.0.0.1:${await closedPort()}`).send(chat());
    assert.deepEqual(summary(outcome), ['busy', 'Twilio could not be reached: connection refused.']);
  });

  test('that breaks or times out is unknown, before and after Twilio accepted the message', async (t) => {
    const { chatUrl, behave, inbox } = await chatSimulator(t);
    const twilio = twilioAt(chatUrl, { timeoutSeconds: 1 });
    for (const [behaviour, detail, arrived] of [
      [{ reset_before_accept: 1 }, 'connection lost', 0],
      [{ reset_after_accept: 1 }, 'connection lost', 1],
      [{ hang: 1 }, 'no answer in time', 2],
    ] as const) {
      await behave(behaviour);
      const message = chat();
      const period = { fromMs: Date.now(), untilMs: Infinity };
      assert.deepEqual(summary(await twilio.send(message)), ['unknown', `Twilio did not answer: ${detail}.`]);
      const all = await inbox();
      assert.equal(all.length, arrived);
      assert.equal(await twilio.find?.(message, period), arrived === 0 ? undefined : all[0]?.id);
    }
  });

  test('never follows a redirect with our credentials', async (t) => {
    let requests = 0;
    const other = await httpServer(t, (_, response) => response.end(String(++requests)));
    const url = await httpServer(t, answering({ status: 302, headers: { location: other } }));
    assert.equal((await twilioAt(url).send(chat())).kind, 'account');
    assert.equal(requests, 0);
  });
});
