import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parseMailbox } from '../../src/domain/email/address.ts';
import { maskAddress, maskAddresses, maskNumber } from '../../src/lib/mask.ts';
import { address } from '../domain/near-addresses.ts';

describe('a masked address', () => {
  for (const [text, masked] of [
    ['ada@example.com', 'a***@example.com'],
    ['Ada King <ada@example.com>', 'a***@example.com'],
    ['"Ada <x>" <ada@example.com>', 'a***@example.com'],
    ['Ada < ada@example.com >', 'a***@example.com'],
    ['ada@bücher.example', 'a***@bücher.example'],
    ['ada@eve@example.com', 'a***@example.com'],
    ['😀x@example.com', '😀***@example.com'],
    ['@example.com', '***'],
    ['ada', '***'],
    ['', '***'],
    ['Ada <>', '***'],
  ] as const) {
    it(`is ${masked} for ${JSON.stringify(text)}`, () => assert.equal(maskAddress(text), masked));
  }

  it('shows the first letter and the domain of any address, and neither name nor the rest', () => {
    fc.assert(
      fc.property(address, (text) => {
        const mailbox = parseMailbox(text);
        fc.pre(typeof mailbox !== 'string');
        const masked = maskAddress(text);
        assert.match(masked, /^[^@]\*{3}@[^@\s]+$/);
        assert.ok(masked.startsWith(mailbox.local.slice(0, 1)));
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('a masked number', () => {
  for (const [text, masked] of [
    ['+4915112345678', '+491***78'],
    ['US.13491208655302741918', 'US.***18'],
    ['+12345678', '+123***78'],
    ['+1234567', '+12***67'],
    ['+123456', '***'],
    ['', '***'],
  ] as const) {
    it(`is ${masked} for ${JSON.stringify(text)}`, () => assert.equal(maskNumber(text), masked));
  }
});

describe('a masked sentence', () => {
  for (const [text, masked] of [
    ['550 5.1.1 <ada@example.com>: no such user', '550 5.1.1 <a***@example.com>: no such user'],
    [
      'ada@example.com, bob@example.net and eve@example.org.',
      'a***@example.com, b***@example.net and e***@example.org.',
    ],
    ['sent to "ada@example.com" (ada@example.com);', 'sent to "a***@example.com" (a***@example.com);'],
    ['bounces+ada=example.com@example.net', 'b***@example.net'],
    ['ada@bücher.example\nada@example.com', 'a***@bücher.example\na***@example.com'],
    ['Try again @ 10:00, or not', 'Try again @ 10:00, or not'],
    ['', ''],
  ] as const) {
    it(`is ${JSON.stringify(masked)}`, () => assert.equal(maskAddresses(text), masked));
  }

  it('holds none of the addresses that stood in it', () => {
    const plain = fc.emailAddress().filter((one) => /^[a-z0-9.+-]{5,}@/i.test(one));
    fc.assert(
      fc.property(fc.array(plain, { minLength: 1, maxLength: 4 }), (addresses) => {
        const masked = maskAddresses(`Refused: <${addresses.join('>, <')}>`);
        for (const one of addresses) assert.ok(!masked.includes(one), masked);
      }),
    );
  });
});
