import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import fc from 'fast-check';
import { smtp } from '../../src/providers/smtp/smtp.ts';
import type { OutgoingEmail } from '../../src/domain/email/outgoing.ts';
import { outgoing } from '../providers/outgoing.ts';
import { CALL } from '../providers/simulator.ts';
import { smtpScript } from '../providers/smtp-script.ts';

/**
 * The API refuses line breaks and controls in every value that can become a header (test/http/send-fields.test.ts). If one
 * was stored nevertheless, it must not become a header, a recipient or the end of the message on the wire.
 */
const BREAKS = ['\r\n', '\n', '\r', '\n\n', '\r\n.\r\n', '\0\r\n', '\u2028', '\u0085', '\v', '\f'];
const PAYLOADS = ['Bcc: evil@evil.example', 'RCPT TO:<evil@evil.example>', '\r\nMAIL FROM:<evil@evil.example>'];
const HOSTILE = BREAKS.flatMap((line) => PAYLOADS.map((payload) => `a${line}${payload}${line}b`));

type Put = (email: OutgoingEmail, text: string) => OutgoingEmail;
const mailbox = (name: string) => ({ name, local: 'p', domain: 'example.net', address: 'p@example.net' });
const file = { filename: 'a.txt', contentType: 'text/plain', contentId: null, content: Buffer.from('x') };

/** Every field of an email that becomes a header or a part of one. */
const FIELDS: Readonly<Record<string, Put>> = {
  subject: (email, text) => ({ ...email, subject: text }),
  "from's name": (email, text) => ({ ...email, from: { ...email.from, name: text } }),
  "to's name": (email, text) => ({ ...email, to: [mailbox(text)] }),
  "cc's name": (email, text) => ({ ...email, cc: [mailbox(text)] }),
  "reply_to's name": (email, text) => ({ ...email, replyTo: [mailbox(text)] }),
  'a header': (email, text) => ({ ...email, headers: [['X-A', text]] }),
  "a file's name": (email, text) => ({ ...email, files: [{ ...file, filename: text }] as OutgoingEmail['files'] }),
  "a file's id": (email, text) => ({ ...email, files: [{ ...file, contentId: text }] as OutgoingEmail['files'] }),
};

const KNOWN = /^(?:from|to|cc|reply-to|subject|message-id|date|mime-version|content-[a-z-]+|x-a)$/;

/** Sends an email. @returns the names of all headers, including those of parts, and the commands of the envelope */
async function transmit(t: TestContext, email: OutgoingEmail) {
  const server = await smtpScript(t, {});
  const [outcome] = await smtp(server.url).send([email], CALL);
  assert.equal(outcome?.kind, 'sent');
  assert.equal(server.messages.length, 1, 'one message');
  const raw = server.messages[0] as string;
  const boundary = /boundary="([^"]+)"/.exec(raw)?.[1];
  const heads = (boundary === undefined ? [raw] : raw.split(`--${boundary}`)).map((part) =>
    part.replace(/^\r\n/, '').split('\r\n\r\n', 1).join(),
  );
  const names = heads.flatMap((head) =>
    head
      .split(/\r\n(?![ \t])/)
      .flatMap((line) => (line.includes(':') ? [line.split(':', 1).join().toLowerCase()] : [])),
  );
  return {
    names,
    bare: /(?<!\r)\n|\r(?!\n)/.test(raw),
    commands: server.commands.filter((line) => /^(?:MAIL|RCPT|DATA)/i.test(line)),
  };
}

describe('a line break creates no header and no recipient on the wire', () => {
  for (const [field, put] of Object.entries(FIELDS)) {
    it(`in ${field}`, async (t) => {
      const plain = await transmit(t, put(outgoing(), 'harmless'));
      for (const text of HOSTILE) {
        const { names, bare, commands } = await transmit(t, put(outgoing(), text));
        const strange = names.filter((name) => !KNOWN.test(name));
        assert.deepEqual(strange, [], JSON.stringify(text));
        assert.equal(names.length, plain.names.length, `${JSON.stringify(text)} ${names.join()}`);
        assert.ok(!bare, `no bare CR or LF: ${JSON.stringify(text)}`);
        assert.equal(commands.length, plain.commands.length, commands.join());
        assert.doesNotMatch(commands.join(), /evil/);
      }
    });
  }

  it('and in no other text that a header of an accepted email may contain', async (t) => {
    const line = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }).filter((text) => /\S/.test(text));
    const printable = line.map((text) => text.replace(/[\p{Cc}\u2028\u2029]/gu, ''));
    const plain = await transmit(t, { ...outgoing(), headers: [['X-A', 'x']] });
    await fc.assert(
      fc.asyncProperty(printable, printable, printable, async (subject, name, value) => {
        fc.pre(subject !== '' && name !== '' && value !== '');
        const email = { ...outgoing(), subject, headers: [['X-A', value]] as OutgoingEmail['headers'] };
        const { names, bare } = await transmit(t, { ...email, from: { ...email.from, name } });
        assert.deepEqual(names.sort(), plain.names.sort());
        assert.ok(!bare, 'no bare CR or LF');
      }),
      { numRuns: 200 },
    );
  });
});
