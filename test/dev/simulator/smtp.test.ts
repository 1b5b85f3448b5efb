import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTransport } from 'nodemailer';
import { BOUNCE_REASONS } from '../../../src/domain/email/email.ts';
import { start } from './start.ts';

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
  const { id, received_at: at, headers, ...rest } = message;
  assert.match(`${id} ${at}`, /^\S+ \S+Z$/);
  assert.deepEqual(rest, {
    provider: 'smtp',
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
  });
  const { 'Message-ID': messageId, 'X-Note': note, 'X-Twice': twice } = headers;
  assert.deepEqual([messageId, note, twice], ['<em_1@example.com>', 'grün', '1, 2']);
  for (const address of ['jane@example.net', 'r@example.net', 'C@example.net', 'hidden@example.net'])
    assert.deepEqual(await inbox(address), [message], address);
});

test('takes the recipients from the envelope', async (t) => {
  const { mailer, inbox } = await start(t);
  const envelope = { from: 'a@example.com', to: ['copy@example.net'] };
  await mailer.sendMail({ from: 'a@example.com', to: 'shown@example.net', text: 'Hi.', envelope });
  assert.deepEqual(await inbox('shown@example.net'), []);
  const [message] = await inbox('copy@example.net');
  assert.deepEqual([message?.to, message?.bcc], [['shown@example.net'], ['copy@example.net']]);
});

test('applies the switches to SMTP', async (t) => {
  const { mailer, inbox, behave } = await start(t);
  const plain = { from: 'a@example.com', to: 'b@example.net', text: 'Hi.' };
  await behave({ fail_next: 1 });
  await assert.rejects(mailer.sendMail(plain), { responseCode: 451 });
  await behave({ hang: 1 });
  const { host, port } = mailer.options as { host: string; port: number };
  await assert.rejects(createTransport({ host, port, socketTimeout: 300 }).sendMail(plain), { code: 'ETIMEDOUT' });
  assert.equal((await inbox()).length, 1);
});

test('refuses a message for an unknown bounce reason, naming those that there are', async (t) => {
  const { mailer, inbox } = await start(t);
  const to = ['b@example.net', 'bounced+spam@example.net'];
  const refused = mailer.sendMail({ from: 'a@example.com', to, text: 'Hi.' });
  await assert.rejects(refused, ({ responseCode, response }: { responseCode: number; response: string }) => {
    assert.equal(responseCode, 550);
    for (const reason of BOUNCE_REASONS) assert.ok(response.includes(reason), response);
    return true;
  });
  assert.deepEqual(await inbox(), []);
});
