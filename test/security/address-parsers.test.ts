import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { domainToASCII } from 'node:url';
import addresses from 'email-addresses';
import fc from 'fast-check';
import nodemailerParser from 'nodemailer/lib/addressparser';
import { parseMailbox } from '../../src/domain/email/address.ts';
import { formatMailbox } from '../../src/domain/email/outgoing.ts';
import { address, nameText, nearAddress } from '../domain/near-addresses.ts';

/**
 * Compares our parser with nodemailer's, which accepts nearly everything, and with email-addresses, which follows the grammar
 * of RFC 5322 and 6532. test/domain/address-properties.test.ts compares accepted addresses with nodemailer.
 */

/** The mailbox by the grammar, or null if it refuses the text. */
function byGrammar(text: string): { name: string | null; address: string } | null {
  const read = addresses({ input: text, rfc6532: true });
  if (read === null) return null;
  const [one] = read.addresses;
  assert.ok(read.addresses.length === 1 && one?.type === 'mailbox', `${JSON.stringify(text)} is not one mailbox to it`);
  // By the obsolete grammar, space between a bracket and the address stays.
  const address = `${one.local.trimStart()}@${domainToASCII(one.domain.trimEnd())}`;
  return { name: one.name === '' ? null : one.name, address };
}

/**
 * A known difference: for RFC 6532 no-break and ideographic spaces are letters, and runs of spaces in a name are one. We trim
 * all of them, as JavaScript does.
 */
const plainSpace = (text: string): string => text.replace(/\s/gu, ' ');
const oneSpace = (text: string | null): string | null => text && plainSpace(text).replace(/ +/g, ' ').trim();

describe('an address that we accept', () => {
  it('is no other mailbox by the grammar of RFC 5322, near misses included', () => {
    const counts = { accepted: 0, refused: 0 };
    fc.assert(
      fc.property(fc.oneof(address, nearAddress), (given) => {
        const text = plainSpace(given);
        const ours = parseMailbox(text);
        if (typeof ours === 'string') return;
        counts.accepted++;
        const theirs = byGrammar(text);
        if (theirs === null) {
          counts.refused++;
          return;
        }
        assert.equal(theirs.address, ours.address, JSON.stringify(text));
        assert.equal(oneSpace(theirs.name), oneSpace(ours.name), JSON.stringify(text));
      }),
      { numRuns: 20_000 },
    );
    assert.ok(counts.accepted > 5_000, `only ${counts.accepted} of 20,000 texts were compared`);
    assert.ok(counts.refused < counts.accepted / 10, `it refuses ${counts.refused} of ${counts.accepted}`);
  });

  it('is the same mailbox with the same name by the grammar as we format it', () => {
    fc.assert(
      fc.property(nameText, address, (name, text) => {
        const ours = parseMailbox(text);
        fc.pre(typeof ours !== 'string' && !name.includes('=?'));
        const formatted = formatMailbox({ ...ours, name });
        const theirs = byGrammar(formatted);
        assert.equal(theirs?.address, ours.address, formatted);
        assert.equal(oneSpace(theirs.name), oneSpace(name), formatted);
      }),
      { numRuns: 5_000 },
    );
  });
});

it('refuses texts in which other parsers find an address', () => {
  for (const text of [
    ...['a@b@c.example', 'a@b.example.', 'a@-b.example', 'a@[127.0.0.1]', 'ä@b.example', 'a@b.example;'],
    ...['"a@evil.example"@b.example', '=?utf-8?q?a=40c.example?=@b.example', 'a@b.example, c@d.example'],
    ...['Friends: a@b.example, c@d.example;', '(x)a@b.example', 'Ada (eve@evil.example) <a@b.example>'],
    ...['<@evil.example:a@b.example>', '"Ada" "King" <a@b.example>', 'eve@evil.example <a@b.example>'],
    ...['<a@b.example> eve@evil.example', 'Ada <a@b.example', 'a@b.example\r\nRCPT TO:<evil@x.example>'],
  ]) {
    assert.equal(typeof parseMailbox(text), 'string', text);
    assert.ok(nodemailerParser(text).length > 0, text);
  }
});
