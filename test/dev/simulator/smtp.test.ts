import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTransport } from 'nodemailer';
import { start, timed, until } from './start.ts';

const plain = { from: 'a@example.com', to: 'b@example.net', subject: 'Hello', text: 'Hi there.' };

test('a message by SMTP stands in the inbox as its reader would see it', async (t) => {
  const { mailer, inbox } = await start(t);
  await mailer.sendMail({
    from: 'Jörg <j@example.com>',
    to: ['"Doe, Jane" <jane@example.net>', 'r@example.net'],
    cc: 'Cleo <c@example.net>',
    bcc: 'Hidden@example.net',
    subject: 'Über alles '.repeat(12).trim(),
    text: 'Grüße\nin zwei Zeilen',
    html: '<p>Grüße</p>',
    messageId: '<em_1@example.com>',
    headers: { 'X-Note': 'grün', 'X-Twice': ['1', '2'] },
    attachments: [
      { filename: 'bericht ü.pdf', content: Buffer.alloc(3_000), contentType: 'application/pdf' },
      { filename: 'logo.png', content: 'x', cid: 'logo@example.com' },
    ],
  });
  const [message, ...more] = await inbox();
  assert.ok(message);
  assert.equal(more.length, 0);
  const { headers, ...rest } = message;
  assert.deepEqual(
    { ...rest, id: '', received_at: '' },
    {
      provider: 'smtp',
      id: '',
      from: 'Jörg <j@example.com>',
      to: ['"Doe, Jane" <jane@example.net>', 'r@example.net'],
      cc: ['Cleo <c@example.net>'],
      bcc: ['Hidden@example.net'],
      subject: 'Über alles '.repeat(12).trim(),
      text: 'Grüße\nin zwei Zeilen',
      html: '<p>Grüße</p>',
      attachments: [
        { filename: 'logo.png', content_type: 'image/png', size: 1, content_id: 'logo@example.com' },
        { filename: 'bericht ü.pdf', content_type: 'application/pdf', size: 3_000, content_id: null },
      ],
      received_at: '',
    },
  );
  assert.equal(headers['Message-ID'], '<em_1@example.com>');
  assert.equal(headers['X-Note'], 'grün');
  assert.equal(headers['X-Twice'], '1, 2');
  for (const address of ['jane@example.net', 'r@example.net', 'C@example.net', 'hidden@example.net'])
    assert.deepEqual(await inbox(address), [message], address);
});

test('who gets a message is what the envelope says', async (t) => {
  const { mailer, inbox } = await start(t);
  const envelope = { from: 'a@example.com', to: ['copy@example.net'] };
  await mailer.sendMail({ ...plain, to: 'shown@example.net', envelope });
  assert.deepEqual(await inbox('shown@example.net'), []);
  const [message] = await inbox('copy@example.net');
  assert.deepEqual([message?.to, message?.bcc], [['shown@example.net'], ['copy@example.net']]);
});

test('one body leaves the other null', async (t) => {
  const { mailer, inbox } = await start(t);
  const { text, ...bodiless } = plain;
  await mailer.sendMail({ ...bodiless, text });
  await mailer.sendMail({ ...bodiless, html: '<p>x</p>' });
  assert.deepEqual(
    (await inbox()).map((message) => [message.text, message.html]),
    [
      [null, '<p>x</p>'],
      ['Hi there.', null],
    ],
  );
});

test('any password is right', async (t) => {
  const { mailer, inbox } = await start(t);
  const { host, port } = mailer.options as { host: string; port: number };
  const other = createTransport(`smtp://user:secret@${host}:${port}`);
  t.after(() => other.close());
  await other.sendMail(plain);
  assert.equal((await inbox()).length, 1);
});

test('fail-once@ is refused at its first RCPT, fail-always@ at each', async (t) => {
  const { mailer, inbox } = await start(t);
  const refused = { responseCode: 451, response: /^451 4\.3\.0 / };
  await assert.rejects(mailer.sendMail({ ...plain, to: 'fail-once@example.net' }), refused);
  await mailer.sendMail({ ...plain, to: 'fail-once@example.net' });
  for (let i = 0; i < 2; i++)
    await assert.rejects(mailer.sendMail({ ...plain, to: 'fail-always@example.net' }), refused);
  assert.equal((await inbox()).length, 1);
});

test('slow@ is in the inbox at once and answered late', async (t) => {
  const { mailer, inbox } = await start(t);
  const sending = timed(mailer.sendMail({ ...plain, to: 'slow@example.net' }));
  await until(async () => (await inbox('slow@example.net'))[0]);
  const { took } = await sending;
  assert.ok(took >= 390, `took ${took} ms`);
});

test('a message over 64 MB is refused, and the next one is taken', async (t) => {
  const { mailer, inbox } = await start(t);
  const attachments = [{ filename: 'a.bin', content: Buffer.alloc(49 * 1_048_576) }];
  await assert.rejects(mailer.sendMail({ ...plain, attachments }), { responseCode: 552 });
  await mailer.sendMail(plain);
  assert.equal((await inbox()).length, 1);
});

test('switches hold for SMTP too', async (t) => {
  const { mailer, inbox, behave } = await start(t);
  const stored = async () => (await inbox()).length;

  await behave({ fail_next: 1 });
  await assert.rejects(mailer.sendMail(plain), { responseCode: 451 });
  assert.equal(await stored(), 0);

  await behave({ reset_before_accept: 1 });
  await assert.rejects(mailer.sendMail(plain), { code: /^(?:ECONNRESET|ESOCKET|ECONNECTION)$/ });
  assert.equal(await stored(), 0);

  await behave({ reset_after_accept: 1 });
  await assert.rejects(mailer.sendMail(plain), { code: /^(?:ECONNRESET|ESOCKET|ECONNECTION)$/ });
  assert.equal(await stored(), 1);

  await behave({ hang: 1 });
  const { host, port } = mailer.options as { host: string; port: number };
  const impatient = createTransport({ host, port, socketTimeout: 300 });
  await assert.rejects(impatient.sendMail(plain), { code: 'ETIMEDOUT' });
  assert.equal(await stored(), 2);

  await behave({ latency_ms: 100 });
  const { took } = await timed(mailer.sendMail(plain));
  assert.ok(took >= 95, `took ${took} ms`);
});
