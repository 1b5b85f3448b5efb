import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { domainToASCII } from 'node:url';
import fc from 'fast-check';
import nodemailerParser from 'nodemailer/lib/addressparser';
import { addressParser as postalMimeParser } from 'postal-mime';
import { type Mailbox, parseDomain, parseMailbox } from '../../src/domain/email/address.ts';
import { formatMailbox } from '../../src/domain/email/outgoing.ts';
import { address, anyString, nameText, nearAddress } from './near-addresses.ts';

const anyText = fc.oneof(address, nearAddress, anyString);

function read(text: string): Mailbox | undefined {
  const mailbox = parseMailbox(text);
  return typeof mailbox === 'string' ? undefined : mailbox;
}

describe('parsing an address', () => {
  it('gives an ASCII address within its limits, which parses to itself, and a name without controls or outer spaces', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        assert.notEqual(parseMailbox(text), '');
        parseDomain(text);
        const mailbox = read(text);
        if (!mailbox) return;
        const { name, local, domain } = mailbox;
        assert.equal(mailbox.address, `${local}@${domain}`);
        assert.match(mailbox.address, /^[\x21-\x7E]+@[a-z0-9-]+(?:\.[a-z0-9-]+)+$/);
        assert.ok(local.length <= 64 && mailbox.address.length <= 254);
        if (name !== null) assert.match(name, /^[^\s\p{Cc}](?:[^\p{Cc}]*[^\s\p{Cc}])?$/u);
        assert.deepEqual(parseMailbox(mailbox.address), { ...mailbox, name: null });
      }),
      { numRuns: 5_000 },
    );
  });

  it('returns the mailbox that was formatted', () => {
    fc.assert(
      fc.property(fc.option(nameText), address, (name, text) => {
        const mailbox = read(text);
        fc.pre(mailbox !== undefined);
        for (const one of [mailbox, { ...mailbox, name }]) assert.deepEqual(parseMailbox(formatMailbox(one)), one);
      }),
      { numRuns: 2_000 },
    );
  });

  it('ignores white space around the text', () => {
    const space = fc.string({ unit: fc.constantFrom(' ', '\u00A0', '\u3000', '\u2003'), maxLength: 4 });
    fc.assert(
      fc.property(fc.oneof(address, nearAddress), space, space, (text, before, after) => {
        assert.deepEqual(parseMailbox(before + text + after), parseMailbox(text));
      }),
      { numRuns: 2_000 },
    );
  });
});

/** The only mailbox that another parser returns, its domain as an A-label; otherwise everything that it returns. */
function parsedBy(parse: (text: string) => { name: string; address?: string | undefined }[], text: string): unknown {
  const all = parse(text);
  const [one] = all;
  if (all.length !== 1 || one?.address === undefined) return all;
  const at = one.address.lastIndexOf('@');
  return `${one.address.slice(0, at)}@${domainToASCII(one.address.slice(at + 1))}`;
}

describe('an address that we accept', () => {
  const parsers = { nodemailer: nodemailerParser, 'postal-mime': postalMimeParser };
  for (const [library, parse] of Object.entries(parsers)) {
    it(`is the same mailbox to ${library}, near misses included`, () => {
      let accepted = 0;
      fc.assert(
        fc.property(fc.oneof(address, nearAddress), (text) => {
          const mailbox = read(text);
          if (!mailbox) return;
          accepted++;
          assert.deepEqual(parsedBy(parse, text), mailbox.address);
        }),
        { numRuns: 20_000 },
      );
      assert.ok(accepted > 5_000, `only ${accepted} of 20,000 texts were compared`);
    });

    it(`is the same mailbox with the same name to ${library} as we format it`, () => {
      fc.assert(
        fc.property(nameText, address, (name, text) => {
          const mailbox = read(text);
          fc.pre(mailbox !== undefined && !name.includes('=?'));
          const formatted = formatMailbox({ ...mailbox, name });
          assert.deepEqual(parse(formatted), [{ address: mailbox.address, name }]);
        }),
        { numRuns: 5_000 },
      );
    });
  }
});
