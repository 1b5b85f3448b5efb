import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import MailComposer from 'nodemailer/lib/mail-composer';
import type { SendMailOptions } from 'nodemailer';
import { serialize } from '../../src/providers/smtp/mime.ts';

const PIECE_BYTES = 57 * 1_024;
const PDF = Buffer.from(Array.from({ length: 3 * PIECE_BYTES + 100 }, (_, i) => (i * 7_919) % 256));
const LOGO = { filename: 'logo é.png', content: Buffer.from('png'), contentType: 'image/png', cid: 'logo' };
const TERMS = { filename: 'terms.pdf', content: PDF, contentType: 'application/pdf' };
const TEXT = 'Grüße,\n.dot\r\n trailing \nlast';
const HTML = `<p>${'word '.repeat(100)}= é</p>\n<img src="cid:logo">`;

const MESSAGES: Readonly<Record<string, SendMailOptions>> = {
  'plain text': { text: 'Hi.' },
  'text with other characters': { text: TEXT },
  'text in another script': { text: 'こんにちは、世界。'.repeat(50) },
  'text and HTML': { text: TEXT, html: HTML },
  'HTML with an inline image': { html: HTML, attachments: [LOGO] },
  everything: { text: TEXT, html: HTML, attachments: [LOGO, TERMS] },
  'only a file': { attachments: [TERMS] },
  'a forwarded message': {
    text: 'See below.',
    attachments: [{ filename: 'a.eml', contentType: 'message/rfc822', content: Buffer.from('Subject: é\r\n\r\nHi') }],
  },
  'a large body': { html: HTML.repeat(500) },
};

const compile = (options: SendMailOptions) =>
  new MailComposer({
    ...options,
    from: 'Ada <ada@acme.example>',
    to: ['b@example.net', 'Bücher <c@bücher.example>'],
    subject: 'Grüße an alle',
    date: new Date(0),
    messageId: '<em_1@acme.example>',
    baseBoundary: 'em_1',
  }).compile();

/** With a line break at the end, which nodemailer otherwise adds where a connection writes the final dot. */
const ended = (message: Buffer) => message.toString('latin1').replace(/(\r\n)?$/, '\r\n');

describe('a serialized message', () => {
  for (const [name, options] of Object.entries(MESSAGES))
    test(`has the bytes that nodemailer writes: ${name}`, async () => {
      const pieces = [...serialize(compile(options))];
      const [actual, expected] = [Buffer.concat(pieces), await compile(options).build()];
      assert.equal(ended(actual), ended(expected));
      assert.ok(pieces.slice(0, -1).every(({ length }) => length === PIECE_BYTES));
    });
});
