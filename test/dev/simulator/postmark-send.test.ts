import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unstalledMs } from '../../support/unstalled-time.ts';
import { mail, start, timed } from './start.ts';

interface Refused {
  ErrorCode: number;
  Message: string;
}

test('a message is answered as by Postmark and stands in the inbox in the words it was given', async (t) => {
  const { postmark, inbox } = await start(t);
  const answer = await postmark.sendEmail({
    From: '"Sender, the" <sender@example.com>',
    To: 'one@example.net, "Two, jr." <Two@example.net>',
    Cc: 'three@example.net',
    Bcc: 'four@example.net',
    ReplyTo: 'reply@example.com',
    Subject: 'Grüße',
    TextBody: 'text',
    HtmlBody: '<p>html</p>',
    Headers: [{ Name: 'Message-ID', Value: '<id@example.com>' }],
    Attachments: [{ Name: 'ü.txt', Content: 'aGVsbG8=', ContentType: 'text/plain', ContentID: 'cid:1' }],
    Metadata: { email: 'em_1' },
  });
  assert.match(answer.MessageID, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.match(answer.SubmittedAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$/);
  assert.deepEqual(
    { ...answer, MessageID: '', SubmittedAt: '' },
    {
      To: 'one@example.net, "Two, jr." <Two@example.net>',
      Cc: 'three@example.net',
      Bcc: 'four@example.net',
      SubmittedAt: '',
      MessageID: '',
      ErrorCode: 0,
      Message: 'OK',
    },
  );

  for (const address of ['one@example.net', 'TWO@example.net', 'three@example.net', 'four@example.net']) {
    const [message, ...more] = await inbox(address);
    assert.equal(more.length, 0);
    assert.match(message?.received_at ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.deepEqual(
      { ...message, received_at: '' },
      {
        provider: 'postmark',
        id: answer.MessageID,
        from: '"Sender, the" <sender@example.com>',
        to: ['one@example.net', '"Two, jr." <Two@example.net>'],
        cc: ['three@example.net'],
        bcc: ['four@example.net'],
        subject: 'Grüße',
        text: 'text',
        html: '<p>html</p>',
        headers: { 'Reply-To': 'reply@example.com', 'Message-ID': '<id@example.com>' },
        attachments: [{ filename: 'ü.txt', content_type: 'text/plain', size: 5, content_id: '1' }],
        received_at: '',
      },
    );
  }
  assert.deepEqual(await inbox('ne@example.net'), []);
});

test('the token is asked for before anything else', async (t) => {
  const { post, postmarkUrl, inbox } = await start(t);
  for (const token of ['', 'wrong', 'server-tokeN']) {
    const answer = await post('/email', 'no json', { 'x-postmark-server-token': token });
    assert.equal(answer.status, 401);
    assert.equal(((await answer.json()) as Refused).ErrorCode, 10);
  }
  assert.equal((await fetch(`${postmarkUrl}/messages/outbound?count=1&offset=0`)).status, 401);
  assert.deepEqual(await inbox(), []);
});

test('any token will do when none is configured, but there must be one', async (t) => {
  const { post } = await start(t, { serverToken: null });
  const body = JSON.stringify(mail());
  assert.equal((await post('/email', body, { 'x-postmark-server-token': 'anything' })).status, 200);
  assert.equal((await post('/email', body, { 'x-postmark-server-token': '' })).status, 401);
});

const addresses = (count: number) => Array.from({ length: count }, (_, i) => `p${i}@example.net`).join(', ');
const metadata = (count: number, name: string, value: string) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`${i}${name}`, value]));

test('what Postmark refuses is refused with its codes', async (t) => {
  const { post, inbox } = await start(t);
  const cases: [string, number, Record<string, unknown>][] = [
    ['no From', 300, { From: '' }],
    ['two From', 300, { From: 'a@example.com, b@example.com' }],
    ['no To', 300, { To: undefined }],
    ['neither body', 300, { TextBody: '', HtmlBody: null }],
    ['51 recipients', 300, { To: addresses(20), Cc: addresses(20), Bcc: addresses(11) }],
    ['no domain', 300, { To: 'someone' }],
    ['local part that is not ASCII', 300, { To: 'jörg@example.net' }],
    ['domain that is not ASCII', 300, { To: 'a@exämple.net' }],
    ['question mark', 300, { To: 'what?@example.net' }],
    ['two dots', 300, { To: 'a..b@example.net' }],
    ['last dot', 300, { To: 'a.@example.net' }],
    ['unquoted comma in a name', 300, { To: 'Doe, Jane <jane@example.net>' }],
    ['unquoted punctuation in a name', 300, { From: 'Jane (Doe) <jane@example.com>' }],
    ['line break in a name', 300, { To: '"Jane\nBcc: x@example.net" <jane@example.net>' }],
    ['malformed ReplyTo', 300, { ReplyTo: 'nobody' }],
    ['malformed Bcc', 300, { Bcc: 'a@b@c' }],
    ['text over 5 MB', 300, { TextBody: 'x'.repeat(5 * 1_048_576 + 1) }],
    ['11 metadata fields', 300, { Metadata: metadata(11, 'a', 'b') }],
    ['long metadata name', 300, { Metadata: metadata(1, 'a'.repeat(20), 'b') }],
    ['long metadata value', 300, { Metadata: metadata(1, 'a', 'b'.repeat(81)) }],
    ['metadata that differs in case only', 300, { Metadata: { a: '1', A: '2' } }],
    ['tag over 1,000', 300, { Tag: 'x'.repeat(1_001) }],
    ['wrong type', 403, { Subject: 5 }],
    ['metadata that is no text', 403, { Metadata: { a: 1 } }],
    ['forbidden attachment', 411, { Attachments: [{ Name: 'a.pdf.EXE', Content: '', ContentType: 'x/y' }] }],
  ];
  for (const [what, code, fields] of cases) {
    const answer = await post('/email', JSON.stringify(mail(fields)));
    const body = (await answer.json()) as Refused;
    assert.deepEqual([answer.status, body.ErrorCode], [422, code], `${what}: ${body.Message}`);
    assert.notEqual(body.Message, '', what);
  }
  assert.deepEqual(await inbox(), []);
});

test('what is at a limit is taken', async (t) => {
  const { post } = await start(t);
  const cases: Record<string, unknown>[] = [
    { To: addresses(20), Cc: addresses(20), Bcc: addresses(10) },
    { Metadata: metadata(10, 'a'.repeat(19), 'b'.repeat(80)) },
    { Tag: 'x'.repeat(1_000) },
    { To: "Mary O'Neil, M.Sc. <mary@example.net>".replace(',', '') },
    { To: '"A 5\\" disk, old" <o.b!#$%&\'`*+-/=^_{}|~@example.net>' },
    { HtmlBody: 'x'.repeat(5 * 1_048_576) },
    { Unknown: 'field', Cc: '', Bcc: null },
  ];
  for (const fields of cases) {
    const answer = await post('/email', JSON.stringify(mail(fields)));
    assert.equal(answer.status, 200, await answer.text());
  }
});

test('requests that are too large, no JSON or not said to be JSON', async (t) => {
  const { post, inbox } = await start(t);
  const file = { Name: 'a.pdf', Content: 'x'.repeat(11 * 1_048_576), ContentType: 'application/pdf' };
  const large = await post('/email', JSON.stringify(mail({ Attachments: [file] })));
  assert.equal(large.status, 413);

  for (const [body, headers, code] of [
    ['{"From": ', {}, 402],
    ['', {}, 402],
    ['[]', {}, 403],
    ['{}', { 'content-type': 'text/plain' }, 409],
  ] as const) {
    const answer = await post('/email', body, headers);
    assert.deepEqual([answer.status, ((await answer.json()) as Refused).ErrorCode], [422, code], body);
  }
  const object = await post('/email/batch', '{}');
  assert.deepEqual([object.status, ((await object.json()) as Refused).ErrorCode], [422, 403]);
  const long = await post('/email/batch', JSON.stringify(Array(501).fill(mail())));
  assert.deepEqual([long.status, ((await long.json()) as Refused).ErrorCode], [422, 410]);
  assert.deepEqual(await inbox(), []);
});

test('a batch is answered in its order, each message for itself', async (t) => {
  const { postmark, inbox } = await start(t);
  const mails = Array.from({ length: 500 }, (_, i) =>
    mail({ Subject: `Number ${i}`, ...(i === 7 && { To: 'nobody' }) }),
  );
  const answers = await postmark.sendEmailBatch(mails);
  assert.equal(answers.length, 500);
  assert.equal(answers[7]?.ErrorCode, 300);
  for (const i of [0, 6, 8, 499]) {
    const [message] = await inbox(mails[i]?.To);
    assert.deepEqual([message?.id, message?.subject], [answers[i]?.MessageID, `Number ${i}`]);
    assert.equal(answers[i]?.To, mails[i]?.To);
  }
});

test('a message of a batch may not be larger than one alone', async (t) => {
  const { post } = await start(t);
  const file = { Name: 'a.pdf', Content: 'x'.repeat(10 * 1_048_576), ContentType: 'application/pdf' };
  const answer = await post('/email/batch', JSON.stringify([mail({ Attachments: [file] }), mail()]));
  const items = (await answer.json()) as Refused[];
  assert.deepEqual([answer.status, ...items.map((item) => item.ErrorCode)], [200, 300, 0]);
});

test('fail-once@ fails the first call with a message, which its metadata name, or its address and subject', async (t) => {
  const { post, inbox } = await start(t);
  const To = 'Fail-Once@example.net';
  const statusOf = async (fields: object) => (await post('/email', JSON.stringify(mail({ To, ...fields })))).status;
  assert.equal(await statusOf({ Metadata: { email: 'em_1' } }), 500);
  assert.equal(await statusOf({ Metadata: { email: 'em_1' } }), 200);
  assert.equal(await statusOf({ Metadata: { email: 'em_1' } }), 200);
  assert.equal(await statusOf({ Metadata: { email: 'em_2' } }), 500);
  assert.equal(await statusOf({ Subject: 'A' }), 500);
  assert.equal(await statusOf({ Subject: 'B' }), 500);
  assert.equal(await statusOf({ Subject: 'A' }), 200);
  assert.equal((await inbox(To)).length, 3);
});

test('fail-always@ never gets a message, and in a batch only its own item fails', async (t) => {
  const { post, postmark, inbox } = await start(t);
  for (let i = 0; i < 3; i++) {
    const answer = await post('/email', JSON.stringify(mail({ Cc: 'fail-always+x@example.net' })));
    assert.deepEqual([answer.status, ((await answer.json()) as Refused).ErrorCode], [500, 100]);
  }
  const batch = [mail(), mail({ To: 'fail-once@example.net' }), mail({ To: 'fail-always@example.net' })];
  const codes = async () => (await postmark.sendEmailBatch(batch)).map((item) => item.ErrorCode);
  assert.deepEqual(await codes(), [0, 100, 100]);
  assert.deepEqual(await codes(), [0, 0, 100]);
  assert.deepEqual(await inbox('fail-always@example.net'), []);
});

test('slow@ is in the inbox at once and answered late', async (t) => {
  const { postmark, inbox } = await start(t);
  const sending = timed(postmark.sendEmailBatch([mail(), mail({ To: 'slow@example.net' })]));
  const began = unstalledMs();
  await postmark.sendEmail(mail());
  assert.ok(unstalledMs() - began < 300, `a plain message took ${unstalledMs() - began} ms`);
  assert.equal((await inbox('slow@example.net')).length, 1);
  const { result, took } = await sending;
  assert.deepEqual(
    result.map((item) => item.ErrorCode),
    [0, 0],
  );
  assert.ok(took >= 390, `took ${took} ms`);
});
