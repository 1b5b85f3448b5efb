import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { personalize } from '../../src/domain/email/marketing.ts';
import { postmark } from '../../src/providers/postmark/postmark.ts';
import { addresses, outgoing } from './outgoing.ts';
import { recordingServer } from './servers.ts';
import { CALL, simulator, TOKEN } from './simulator.ts';

const MAX_BYTES = 10 * 1_048_576;

/** The request for an email. */
async function requestOf(t: TestContext, email: ReturnType<typeof outgoing>, settings: object = {}) {
  const { url, requests } = await recordingServer(t, { body: { ErrorCode: 0, MessageID: 'x' } });
  await at(url, settings).send([email], CALL);
  const [{ method, url: path, headers, body } = assert.fail()] = requests;
  const message = JSON.parse(body.toString()) as Record<string, unknown>;
  return { path: `${method} ${path}`, token: headers['x-postmark-server-token'], bytes: body.length, message };
}

function at(baseUrl: string, settings: object = {}) {
  return postmark({ serverToken: TOKEN, baseUrl, messageStream: 'a-stream', broadcastStream: 'news', ...settings });
}

describe('a message', () => {
  test('has the email id in its metadata, signed', async (t) => {
    const email = outgoing();
    const { message } = await requestOf(t, email, { signEmailId: (id: string) => `of ${id}` });
    assert.deepEqual(message['Metadata'], { email: email.id, call: CALL, sig: `of ${email.id}` });
  });

  test('requests tracking only for what its domain has tracked', async (t) => {
    const html = '<a href="https://acme.example">Acme</a>';
    for (const [tracking, expected] of [
      [
        { opens: true, clicks: true },
        { TrackOpens: true, TrackLinks: 'HtmlOnly', HtmlBody: html },
      ],
      [
        { opens: true, clicks: false },
        { TrackOpens: true, TrackLinks: undefined, HtmlBody: html },
      ],
      [
        { opens: false, clicks: true },
        { TrackOpens: undefined, TrackLinks: 'HtmlOnly', HtmlBody: html },
      ],
      [
        { opens: false, clicks: false },
        { TrackOpens: undefined, TrackLinks: undefined, HtmlBody: html },
      ],
    ] as const) {
      const { message } = await requestOf(t, { ...outgoing({ html }), tracking });
      const { TrackOpens, TrackLinks, HtmlBody } = message;
      assert.deepEqual({ TrackOpens, TrackLinks, HtmlBody }, expected);
    }
  });

  test('excludes the unsubscribe link from the tracking of clicks by its domain or the Postmark server', async (t) => {
    const html = '<a href="{{{unsubscribe_url}}}">Stop</a><a href="https://acme.example">Acme</a>';
    const email = personalize(outgoing({ html, marketing: true }), 'https://mail.example/unsubscribe/x?a=1&b=2');
    const link = '<a href="https://mail.example/unsubscribe/x?a=1&amp;b=2" data-pm-no-track>Stop</a>';
    for (const clicks of [true, false]) {
      const { message } = await requestOf(t, { ...email, tracking: { opens: false, clicks } });
      assert.equal(message['HtmlBody'], `${link}<a href="https://acme.example">Acme</a>`);
    }
  });

  test('leaves out control headers of providers, which an older version accepted', async (t) => {
    const headers = { 'X-PM-Message-Stream': 'theirs', 'x-pm-metadata-email': 'em_x', 'X-Order': '1' };
    const { message } = await requestOf(t, outgoing({ headers }));
    const names = (message['Headers'] as { Name: string }[]).map(({ Name }) => Name);
    assert.deepEqual(names, ['Message-ID', 'X-Order']);
  });

  test('has every field of the API', async (t) => {
    const email = outgoing({
      id: 'em_01jqz000000000000000000000',
      from: 'Jörg <j@acme.example>',
      to: ['a@example.net', 'Bea <b@example.net>'],
      cc: ['c@example.net'],
      bcc: ['Dee <d@example.net>'],
      reply_to: ['Help <help@acme.example>', 'e@acme.example'],
      subject: 'Grüße 👋',
      html: '<p>ü</p>',
      text: 'ü\r\n.\r\n',
      headers: { 'X-B': '2', 'X-A': '1', 'x-c': 'ü' },
    });
    const { path, token, message } = await requestOf(t, email);
    assert.equal(path, 'POST /email');
    assert.equal(token, TOKEN);
    assert.deepEqual(message, {
      From: '"Jörg" <j@acme.example>',
      To: 'a@example.net, "Bea" <b@example.net>',
      Cc: 'c@example.net',
      Bcc: '"Dee" <d@example.net>',
      ReplyTo: '"Help" <help@acme.example>, e@acme.example',
      Subject: 'Grüße 👋',
      HtmlBody: '<p>ü</p>',
      TextBody: 'ü\r\n.\r\n',
      MessageStream: 'a-stream',
      Headers: [
        { Name: 'Message-ID', Value: '<em_01jqz000000000000000000000@acme.example>' },
        { Name: 'X-B', Value: '2' },
        { Name: 'X-A', Value: '1' },
        { Name: 'x-c', Value: 'ü' },
      ],
      Metadata: { email: 'em_01jqz000000000000000000000', call: CALL },
    });
  });

  test('is on the broadcast stream if it is marketing email', async (t) => {
    const { message } = await requestOf(t, outgoing({ marketing: true }));
    assert.equal(message['MessageStream'], 'news');
  });

  test('has no empty fields', async (t) => {
    const { message } = await requestOf(t, outgoing({ cc: [], bcc: null, reply_to: [], html: '', text: 'x' }));
    assert.deepEqual(Object.keys(message).sort(), [
      'From',
      'Headers',
      'MessageStream',
      'Metadata',
      'Subject',
      'TextBody',
      'To',
    ]);
  });

  test('quotes every name, so that punctuation in it ends no address', async (t) => {
    const to = ['"Doe, Jane" <a@example.net>', '"say \\"hi\\" \\\\ <x@y.z>" <b@example.net>', 'C. D. <c@example.net>'];
    const { message } = await requestOf(t, outgoing({ to, from: '"ceo@bank.example; x" <d@acme.example>' }));
    assert.equal(
      message['To'],
      '"Doe, Jane" <a@example.net>, "say \\"hi\\" \\\\ <x@y.z>" <b@example.net>, "C. D." <c@example.net>',
    );
    assert.equal(message['From'], '"ceo@bank.example; x" <d@acme.example>');
  });

  test('names a domain in Unicode by its A-label', async (t) => {
    const email = outgoing({ from: 'a@bücher.example', to: ['Q <q@例え.テスト>'] });
    const { message } = await requestOf(t, email);
    assert.equal(message['From'], 'a@xn--bcher-kva.example');
    assert.equal(message['To'], '"Q" <q@xn--r8jz45g.xn--zckzah>');
    assert.deepEqual(message['Headers'], [{ Name: 'Message-ID', Value: `<${email.id}@xn--bcher-kva.example>` }]);
  });

  test('is sent once to an address in several fields, in the first of them', async (t) => {
    const { message } = await requestOf(
      t,
      outgoing({
        to: ['a@example.net', 'Again <A@EXAMPLE.net>', 'b@example.net'],
        cc: ['B@example.net', 'c@example.net'],
        bcc: ['C <c@Example.net>', 'a@example.net'],
      }),
    );
    assert.equal(message['To'], 'a@example.net, b@example.net');
    assert.equal(message['Cc'], 'c@example.net');
    assert.ok(!('Bcc' in message));
  });
});

describe('Postmark refuses', () => {
  const nowhere = at('http://127.0.0.1:1');
  const refusal = (email: ReturnType<typeof outgoing>) => nowhere.refusal(email);

  test('more than 50 recipients in all', () => {
    const fields = { to: addresses(20, 't'), cc: addresses(20, 'c') };
    assert.equal(refusal(outgoing({ ...fields, bcc: addresses(10, 'b') })), undefined);
    assert.equal(
      refusal(outgoing({ ...fields, bcc: addresses(11, 'b') })),
      'Postmark accepts at most 50 recipients, not 51.',
    );
    assert.equal(refusal(outgoing({ to: addresses(50), cc: addresses(50), bcc: addresses(50) })), undefined);
  });

  for (const [field, fields] of Object.entries({
    from: { from: 'who?@acme.example' },
    to: { to: ['a@example.net', 'B <b?@example.net>'] },
    cc: { cc: ['?@example.net'] },
    bcc: { bcc: ['a?b@example.net'] },
    reply_to: { reply_to: ['a@example.net', 'b?@example.net'] },
  })) {
    test(`an address with a question mark in ${field}, which it refuses as illegal`, async (t) => {
      const email = outgoing(fields);
      assert.equal(refusal(email), `Postmark accepts no address with a question mark, as in ${field}.`);
      const { postmarkUrl } = await simulator(t);
      assert.deepEqual(
        (await at(postmarkUrl).send([email], CALL)).map(({ kind }) => kind),
        ['rejected'],
      );
    });
  }

  // Characters that JSON escapes or that take several bytes.
  for (const character of ['\n', '\u0001', '👋']) {
    test(`more than 10 MB as JSON, filled with ${JSON.stringify(character)}`, async (t) => {
      const width = Buffer.byteLength(JSON.stringify(character)) - 2;
      const filled = (n: number) => outgoing({ id: 'em_1', to: ['a@example.net'], text: character.repeat(n) });
      const { bytes: empty } = await requestOf(t, filled(1));
      const n = 1 + Math.floor((MAX_BYTES - empty) / width);
      const fits = filled(n);
      assert.equal(refusal(fits), undefined);
      const { bytes } = await requestOf(t, fits);
      assert.ok(bytes <= MAX_BYTES && bytes > MAX_BYTES - width, `${bytes} bytes`);
      assert.equal(refusal(filled(n + 1)), `Postmark accepts at most ${MAX_BYTES} bytes, not ${bytes + width}.`);
    });
  }
});
