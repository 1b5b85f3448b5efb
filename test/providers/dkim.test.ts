import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { dkimVerify } from 'mailauth/lib/dkim/verify.js';
import { dkimValue } from '../../src/domain/senders/dkim.ts';
import { signDkim } from '../../src/providers/smtp/dkim.ts';
import { smtp } from '../../src/providers/smtp/smtp.ts';
import { outgoing } from './outgoing.ts';
import { CALL } from './simulator.ts';
import { smtpScript } from './smtp-script.ts';

const { privateKey: key, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });
const record = dkimValue(publicKey.export({ type: 'spki', format: 'der' }).toString('base64'));
const signer = { domain: 'acme.example', selector: 'sw1', key };

const HEAD = [
  'From: "Ada, A" <ada@acme.example>',
  'To: b@example.net,\r\n c@example.net',
  'Subject: =?UTF-8?Q?Gr=C3=BC=C3=9Fe?=\t  twice   spaced ',
  'Date: Sun, 22 Nov 2026 10:00:00 +0000',
  'Message-ID: <em_1@acme.example>',
  'MIME-Version: 1.0',
  'Content-Type: text/plain; charset=utf-8',
];

async function sign(message: string, pieces: readonly number[] = []): Promise<string> {
  const bytes = Buffer.from(message, 'latin1');
  const ends = [...pieces.map((piece) => piece % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
  const chunks = ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end)).filter(({ length }) => length > 0);
  return (await buffer(Readable.from(signDkim(chunks, signer)))).toString('latin1');
}

/** Returns a message as nodemailer sends it, before dot-stuffing: with CRLF as each line end. */
function onWire(message: string): string {
  const lines = message.replaceAll(/\r\n|\r|\n/g, '\r\n');
  return lines.endsWith('\r\n') ? lines : `${lines}\r\n`;
}

/** The result of a receiver's verification. */
async function verdict(message: string): Promise<string | undefined> {
  const { results } = await dkimVerify(Buffer.from(message, 'latin1'), { resolver: async () => [[record]] });
  return results[0]?.status.result;
}

describe('a signature', () => {
  test('is prepended to the unchanged message, in short lines', async () => {
    const message = `${HEAD.join('\r\n')}\r\n\r\nHi.\r\n`;
    const signed = await sign(message);
    assert.ok(signed.startsWith('DKIM-Signature: v=1;') && signed.endsWith(message));
    assert.ok(signed.split('\r\n').every((line) => line.length <= 100));
    assert.equal(await verdict(signed), 'pass');
  });

  for (const added of ['From: <evil@bank.example>', 'To: eve@example.net', 'Subject: Another', 'Date: today'])
    test(`is invalid with an added second ${added.split(':', 1)[0]}, above or below`, async () => {
      const signed = await sign(`${HEAD.join('\r\n')}\r\n\r\nHi.\r\n`);
      assert.notEqual(await verdict(`${added}\r\n${signed}`), 'pass');
      assert.notEqual(await verdict(signed.replace('\r\n\r\n', `\r\n${added}\r\n\r\n`)), 'pass');
    });

  test('is valid for any body in any chunks', async () => {
    const text = fc.string({
      unit: fc.constantFrom('a', ' ', '\t', '\r', '\n', '\r\n', '\r\n\r\n', '.', '\u00fc', '='),
      maxLength: 60,
    });
    await fc.assert(
      fc.asyncProperty(text, fc.array(fc.nat(1_000), { maxLength: 8 }), async (body, pieces) => {
        const signed = await sign(`${HEAD.join('\r\n')}\r\n\r\n${body}`, pieces);
        assert.equal(await verdict(onWire(signed)), 'pass');
      }),
      { numRuns: 300 },
    );
  });

  for (const text of ['a\rb', 'a\r\r\nb\r', '\r.\r'])
    test(`is valid for ${JSON.stringify(text)} as an SMTP server receives it`, async (t) => {
      const server = await smtpScript(t, {});
      await smtp(server.url).send([{ ...outgoing({ text }), dkim: signer }], CALL);
      const [stuffed = ''] = server.messages;
      assert.equal(await verdict(`${stuffed.replaceAll('\r\n..', '\r\n.')}\r\n`), 'pass');
    });
});
