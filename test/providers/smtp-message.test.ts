import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import PostalMime, { decodeWords } from 'postal-mime';
import { smtp } from '../../src/providers/smtp/smtp.ts';
import { addresses, outgoing } from './outgoing.ts';
import { CALL, simulator } from './simulator.ts';
import { smtpScript } from './smtp-script.ts';

/** The envelope and the message of an email on the wire, dots unstuffed. */
async function wire(t: TestContext, email: ReturnType<typeof outgoing>) {
  const server = await smtpScript(t, {});
  const [outcome] = await smtp(server.url).send([email], CALL);
  assert.deepEqual(outcome, { kind: 'sent', messageId: email.messageId });
  assert.equal(server.messages.length, 1);
  const argument = (line: string) => /<(.*)>/.exec(line)?.[1];
  const raw = (server.messages[0] as string).replace(/\r\n\.\./g, '\r\n.');
  const [head = ''] = raw.split('\r\n\r\n', 1);
  return {
    from: server.commands.filter((line) => line.startsWith('MAIL')).map(argument),
    to: server.commands.filter((line) => line.startsWith('RCPT')).map(argument),
    raw,
    head,
    parsed: await PostalMime.parse(Buffer.from(raw, 'latin1')),
  };
}

const header = (head: string, name: string) =>
  new RegExp(`^${name}: ((?:.*)(?:\r\n[ \t].*)*)$`, 'im').exec(head)?.[1]?.replace(/\r\n/g, '');

describe('an email by SMTP', { concurrency: true }, () => {
  test('goes to exactly the recipients of its envelope, each once', async (t) => {
    const email = outgoing({
      from: 'Acme <Hello@acme.example>',
      to: ['a@example.net', 'A@Example.net'],
      cc: ['Cleo <c@example.net>', 'a@example.net'],
      bcc: ['Hidden <h@example.net>', 'C@example.net'],
    });
    const { from, to } = await wire(t, email);
    assert.deepEqual(from, ['Hello@acme.example']);
    assert.deepEqual(to, ['a@example.net', 'c@example.net', 'h@example.net']);
  });

  test('does not contain its Bcc', async (t) => {
    const { raw } = await wire(t, outgoing({ bcc: ['Hidden <hidden@secret.example>'] }));
    assert.doesNotMatch(raw, /bcc|hidden|secret/i);
  });

  test('has up to 150 recipients', async (t) => {
    const { to } = await wire(t, outgoing({ to: addresses(50, 'a'), cc: addresses(50, 'b'), bcc: addresses(50, 'c') }));
    assert.deepEqual(to, [...addresses(50, 'a'), ...addresses(50, 'b'), ...addresses(50, 'c')]);
  });

  test('has a date and our message id, the same for each attempt', async (t) => {
    const email = outgoing();
    const [first, second] = [await wire(t, email), await wire(t, email)];
    for (const { head } of [first, second]) {
      assert.equal(header(head, 'Message-ID'), email.messageId);
      const age = Date.now() - Date.parse(header(head, 'Date') ?? '');
      assert.ok(age >= -1_000 && age < 60_000, `${age} ms old`);
    }
  });

  test('shows its addresses with their names', async (t) => {
    const mailboxes = ['Jörg Müller <j@example.net>', '"Doe, Jane \\"JD\\"" <d@example.net>', '李 <l@example.net>'];
    const { parsed, head } = await wire(
      t,
      outgoing({ from: '"Ä, B" <f@acme.example>', to: mailboxes, cc: ['plain@example.net'], reply_to: mailboxes }),
    );
    const expected = [
      { name: 'Jörg Müller', address: 'j@example.net' },
      { name: 'Doe, Jane "JD"', address: 'd@example.net' },
      { name: '李', address: 'l@example.net' },
    ];
    assert.deepEqual(parsed.from, { name: 'Ä, B', address: 'f@acme.example' });
    assert.deepEqual(parsed.to, expected);
    assert.deepEqual(parsed.replyTo, expected);
    assert.deepEqual(parsed.cc, [{ name: '', address: 'plain@example.net' }]);
    // eslint-disable-next-line no-control-regex -- what is not ASCII must be encoded
    assert.match(head, /^[\x00-\x7F]*$/);
  });

  test('keeps a name that looks like an address a name', async (t) => {
    const { parsed, to } = await wire(t, outgoing({ to: ['"evil@bank.example, b@c.example" <a@example.net>'] }));
    assert.deepEqual(to, ['a@example.net']);
    assert.deepEqual(parsed.to, [{ name: 'evil@bank.example, b@c.example', address: 'a@example.net' }]);
  });

  test('names a domain in Unicode by its A-label, in envelope and headers', async (t) => {
    const { from, to, head } = await wire(t, outgoing({ from: 'a@bücher.example', to: ['Q <q@例え.テスト>'] }));
    assert.deepEqual([from, to], [['a@xn--bcher-kva.example'], ['q@xn--r8jz45g.xn--zckzah']]);
    assert.equal(header(head, 'From'), 'a@xn--bcher-kva.example');
    assert.equal(header(head, 'To'), 'Q <q@xn--r8jz45g.xn--zckzah>');
  });

  test('has the customer’s headers in their order', async (t) => {
    const headers = { 'x-b': '2', 'x-a': 'ä'.repeat(300), 'list-unsubscribe': '<https://acme.example/u?a=1&b=2>' };
    const { head, parsed } = await wire(t, outgoing({ headers }));
    const names = head.split(/\r\n(?![ \t])/).map((line) => line.split(':', 1)[0]);
    assert.deepEqual(
      names.filter((name) => name !== undefined && name.toLowerCase() in headers),
      ['X-B', 'X-A', 'List-Unsubscribe'],
    );
    for (const [name, value] of Object.entries(headers))
      assert.equal(decodeWords(parsed.headers.find(({ key }) => key === name)?.value ?? ''), value);
    assert.ok(head.split('\r\n').every((line) => line.length <= 998));
  });

  test('has headers in ASCII as they were given', async (t) => {
    const headers = {
      'List-ID': '"News" <list.example.com>',
      'X-Json': '{"a":1}',
      'In-Reply-To': 'abc',
      References: '<a@example.com> <b@example.com>',
      'X-Long': `"${'word '.repeat(150)}"`,
    };
    const { head } = await wire(t, outgoing({ headers }));
    for (const [name, value] of Object.entries(headers)) assert.equal(header(head, name), value);
    assert.ok(head.split('\r\n').every((line) => line.length <= 78));
  });

  test('has structured headers in ASCII too, and their other ids as they were given', async (t) => {
    const headers = {
      'In-Reply-To': '<ü@example.com>',
      References: `<a@example.com> <${'é'.repeat(300)}@example.com>`,
      'Content-ID': 'ä',
      'OTP-Token': `"ö"; ${'x'.repeat(800)}`,
    };
    const { head } = await wire(t, outgoing({ headers }));
    // eslint-disable-next-line no-control-regex -- what is not ASCII must be encoded
    assert.match(head, /^[\x00-\x7F]*$/);
    assert.equal(decodeWords(header(head, 'In-Reply-To') ?? ''), headers['In-Reply-To']);
    assert.match(header(head, 'References') ?? '', /^<a@example\.com> /);
    assert.ok(head.split('\r\n').every((line) => line.length <= 998));
  });

  for (const subject of [
    '=?UTF-8?Q?Invoice=0D=0ABcc:_x=40x.test?=',
    'Re: =?utf-8?B?SGk=?= and more',
    '=?utf-8?Q?a?= =?utf-8?Q?b?=',
    'Über =?utf-8?Q?a?=',
    'Is 1 =?',
  ]) {
    test(`has the subject ${subject} as its text`, async (t) => {
      const { head, parsed } = await wire(t, outgoing({ subject }));
      assert.equal(parsed.subject, subject);
      assert.doesNotMatch(head, /Invoice=0D/);
    });
  }

  for (const [name, subject] of Object.entries({
    letters: 'x'.repeat(998),
    'encoded words': '=?utf-8?Q?x?='.repeat(77).slice(0, 998).padEnd(998, 'x'),
    'letters after a space': `a ${'x'.repeat(996)}`,
  }))
    test(`has lines of at most 998 octets with a subject of 998 characters (${name})`, async (t) => {
      const { head, parsed } = await wire(t, outgoing({ subject }));
      assert.equal(parsed.subject, subject);
      const longest = Math.max(...head.split('\r\n').map((line) => line.length));
      assert.ok(longest <= 998, `${longest} octets`);
    });

  test('leaves out control headers of providers, which an older version accepted', async (t) => {
    const headers = { 'X-SMTPAPI': '{"to":["eve@example.net"]}', 'x-pm-metadata-email': 'em_x', 'X-Order': '1' };
    const { head } = await wire(t, outgoing({ headers }));
    assert.equal(header(head, 'X-Order'), '1');
    assert.doesNotMatch(head, /smtpapi|x-pm-|eve@/i);
  });

  const body = 'Grüße 👋\r\n.\r\n..dots\r\n\r\nFrom here\r\n   spaces   \r\n' + 'long '.repeat(1_000) + '\r\nend';
  for (const [name, fields] of Object.entries({
    text: { text: body },
    html: { text: null, html: `<p>${body}</p>` },
    both: { text: body, html: `<p>${body}</p>` },
  }))
    test(`arrives unchanged (${name})`, async (t) => {
      const { smtpUrl, inbox } = await simulator(t);
      const email = outgoing({ subject: `Über ${'lang '.repeat(100)}Ende 👩‍👩‍👧`, ...fields });
      await smtp(smtpUrl).send([email], CALL);
      const [message] = await inbox();
      assert.equal(message?.subject, email.subject);
      const lines = (value: string | null) => value?.replace(/\r\n/g, '\n') ?? null;
      assert.equal(lines(message.text), lines(email.text));
      assert.equal(lines(message.html), lines(email.html));
      const { raw } = await wire(t, email);
      assert.ok(raw.split('\r\n').every((line) => line.length <= 998));
    });

  test('has files with the type of a message unchanged', async (t) => {
    const plain = 'Subject: Hi\r\n\r\nText.\r\n';
    const files = [
      ['unix.eml', 'Subject: Hi\n\nText.\n', 'application/octet-stream'],
      ['utf8.eml', 'Subject: Grüße\r\n\r\n', 'application/octet-stream'],
      ['long.eml', `Subject: ${'x'.repeat(998)}\r\n\r\n`, 'application/octet-stream'],
      ['nul.eml', 'Subject: a\0b\r\n\r\n', 'application/octet-stream'],
    ] as const;
    const email = {
      ...outgoing(),
      files: [['mail.eml', plain] as const, ...files].map(([filename, content]) => ({
        filename,
        content: Buffer.from(content),
        contentType: 'message/rfc822',
        contentId: null,
      })),
    };
    const { raw } = await wire(t, email);
    assert.match(
      raw,
      /^Content-Type: message\/rfc822; name=mail\.eml\r\n(?:.+\r\n)*\r\nSubject: Hi\r\n\r\nText\.\r\n/m,
    );
    const { attachments } = await PostalMime.parse(Buffer.from(raw, 'latin1'), { forceRfc822Attachments: true });
    assert.deepEqual(
      attachments
        .slice(1)
        .map(({ filename, mimeType, content }) => [filename, Buffer.from(content as ArrayBuffer).toString(), mimeType]),
      files.map((file) => [...file]),
    );
  });

  test('reads no file and fetches no URL of its body', async (t) => {
    const { smtpUrl, inbox } = await simulator(t);
    const text = JSON.stringify({ path: '/etc/hostname', href: 'http://127.0.0.1:1/' });
    await smtp(smtpUrl).send([outgoing({ text, html: '<img src="file:///etc/hostname">' })], CALL);
    const [message] = await inbox();
    assert.deepEqual(message?.attachments, []);
    assert.equal(message.text, text);
  });
});
