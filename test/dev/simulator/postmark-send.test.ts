import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BOUNCE_REASONS } from '../../../src/domain/email/email.ts';
import { mail, start } from './start.ts';

test('answers a message as Postmark does and shows it in the inbox as it was sent', async (t) => {
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
  const { MessageID, ErrorCode, To } = answer;
  assert.deepEqual([ErrorCode, To], [0, 'one@example.net, "Two, jr." <Two@example.net>']);

  for (const address of ['one@example.net', 'TWO@example.net', 'three@example.net', 'four@example.net']) {
    const [{ received_at: at, ...message } = assert.fail(address), ...more] = await inbox(address);
    assert.equal(more.length, 0);
    assert.match(at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.deepEqual(message, {
      provider: 'postmark',
      id: MessageID,
      from: '"Sender, the" <sender@example.com>',
      to: ['one@example.net', '"Two, jr." <Two@example.net>'],
      cc: ['three@example.net'],
      bcc: ['four@example.net'],
      subject: 'Grüße',
      text: 'text',
      html: '<p>html</p>',
      headers: { 'Reply-To': 'reply@example.com', 'Message-ID': '<id@example.com>' },
      attachments: [{ filename: 'ü.txt', content_type: 'text/plain', size: 5, content_id: '1' }],
    });
  }
  assert.deepEqual(await inbox('ne@example.net'), []);
});

const addresses = (count: number) => Array.from({ length: count }, (_, i) => `p${i}@example.net`).join(', ');

test('refuses with the codes of Postmark', async (t) => {
  const { post, inbox } = await start(t);
  const cases: [string, number, Record<string, unknown>][] = [
    ['no From', 300, { From: '' }],
    ['51 recipients', 300, { To: addresses(20), Cc: addresses(20), Bcc: addresses(11) }],
    ['last dot', 300, { To: 'a.@example.net' }],
    ['wrong type', 403, { Subject: 5 }],
    ['forbidden attachment', 411, { Attachments: [{ Name: 'a.pdf.EXE', Content: '', ContentType: 'x/y' }] }],
  ];
  for (const [what, code, fields] of cases) {
    const answer = await post('/email', mail(fields));
    assert.deepEqual([answer.status, ((await answer.json()) as { ErrorCode: number }).ErrorCode], [422, code], what);
  }
  assert.deepEqual(await inbox(), []);
});

test('fail-once@ fails the first call with a message, which its metadata name, or its address and subject', async (t) => {
  const { post, inbox } = await start(t);
  const To = 'Fail-Once@example.net';
  const statusOf = async (fields: object) => (await post('/email', mail({ To, ...fields }))).status;
  assert.equal(await statusOf({ Metadata: { email: 'em_1' } }), 500);
  assert.equal(await statusOf({ Metadata: { email: 'em_1' } }), 200);
  assert.equal(await statusOf({ Metadata: { email: 'em_1' } }), 200);
  assert.equal(await statusOf({ Metadata: { email: 'em_2' } }), 500);
  assert.equal(await statusOf({ Subject: 'A' }), 500);
  assert.equal(await statusOf({ Subject: 'B' }), 500);
  assert.equal(await statusOf({ Subject: 'A' }), 200);
  assert.equal((await inbox(To)).length, 3);
});

for (const local of ['bounced+spam', 'Bounced+5.1.1', 'bounced+constructor']) {
  test(`refuses ${local}@ with the bounce reasons that there are`, async (t) => {
    const { post, inbox } = await start(t);
    const answer = await post('/email', mail({ To: 'a@example.net', Bcc: `${local}@example.net` }));
    const { ErrorCode, Message } = (await answer.json()) as { ErrorCode: number; Message: string };
    assert.deepEqual([answer.status, ErrorCode], [422, 300]);
    for (const reason of BOUNCE_REASONS) assert.ok(Message.includes(reason), Message);
    assert.deepEqual(await inbox(), []);
  });
}

test('accepts bounced@ without a reason', async (t) => {
  const { post } = await start(t);
  assert.equal((await post('/email', mail({ To: 'bounced@example.net' }))).status, 200);
});
