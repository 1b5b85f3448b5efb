import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTransport } from 'nodemailer';
import { start } from './start.ts';

const plain = { from: 'a@example.com', to: 'b@example.net', subject: 'Hello', text: 'Hi there.' };

test('shows a message by SMTP in the inbox as its reader would see it', async (t) => {
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

test('takes the recipients from the envelope', async (t) => {
  const { mailer, inbox } = await start(t);
  const envelope = { from: 'a@example.com', to: ['copy@example.net'] };
  await mailer.sendMail({ ...plain, to: 'shown@example.net', envelope });
  assert.deepEqual(await inbox('shown@example.net'), []);
  const [message] = await inbox('copy@example.net');
  assert.deepEqual([message?.to, message?.bcc], [['shown@example.net'], ['copy@example.net']]);
});

test('applies the switches to SMTP', async (t) => {
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
});
