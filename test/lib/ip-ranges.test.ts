import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  isInRanges,
  isPublicAddress,
  networkOf,
  networksOf,
  parseRanges,
  rangeProblem,
} from '../../src/lib/ip-ranges.ts';

describe('a written address or range', () => {
  for (const text of [
    ...['0.0.0.0', '203.0.113.7/8', '0.0.0.0/0', '::1', '2001:DB8::1', '::/0', '::ffff:192.0.2.0/120'],
  ]) {
    it(`may be ${text}`, () => {
      assert.equal(rangeProblem(text), undefined);
      assert.equal(parseRanges([text]).length, 1);
    });
  }

  for (const text of [
    ...['', ' ', 'x', 'localhost', '1.2.3', '1.2.3.4.5', '256.1.1.1', '127.1', '2130706433', '0x7f.0.0.1', '010.1.1.1'],
    ...['1.2.3.4/33', '1.2.3.4/', '/8', '1.2.3.4/8/8', '1.2.3.4/-1', '1.2.3.4/x', '1.2.3.4/8.0', '1.2.3.4/255.0.0.0'],
    ...[':', ':::', '1::2::3', '::g', '::/129', '::1%eth0', 'fe80::1%1/64', '[::1]', '1.2.3.4:80', ' ::1', '::1\n'],
    ...['1.2.3.4,5.6.7.8', '1.2.3.4-5.6.7.8', '１.2.3.4', '*'],
  ]) {
    it(`is not ${JSON.stringify(text)}`, () => {
      assert.match(rangeProblem(text) ?? '', /^must be an IPv4 or IPv6 address, or a range/);
    });
  }
});

describe('an address is in a range', () => {
  for (const [range, inside, outside] of [
    ['203.0.113.7', ['203.0.113.7', '::ffff:203.0.113.7', '::ffff:cb00:7107'], ['203.0.113.8', '::cb00:7107']],
    ['203.0.113.7/24', ['203.0.113.0', '203.0.113.255'], ['203.0.112.255', '203.0.114.0', '::1']],
    ['0.0.0.0/0', ['1.2.3.4', '::ffff:1.2.3.4'], ['::1', '2001:db8::1']],
    ['::/0', ['::1', '2001:db8::1'], ['1.2.3.4', '::ffff:1.2.3.4']],
    ['2001:db8::/32', ['2001:db8::1', '2001:DB8:ffff::'], ['2001:db9::', '1.2.3.4']],
    ['::ffff:10.0.0.0/104', ['10.1.2.3', '::ffff:10.1.2.3'], ['11.0.0.0', '::a01:203']],
  ] as const) {
    it(range, () => {
      const ranges = parseRanges([range]);
      for (const address of inside) assert.ok(isInRanges(address, ranges), `${address} is in it`);
      for (const address of outside) assert.ok(!isInRanges(address, ranges), `${address} is not`);
    });
  }

  it('or in one of several; a string that is no address is in none', () => {
    const ranges = parseRanges(['192.0.2.1', '::/0']);
    for (const address of ['192.0.2.1', '::2']) assert.ok(isInRanges(address, ranges), address);
    for (const text of ['', 'x', '192.0.2.1:80', 'unknown', '192.0.2.1, ::1'])
      assert.ok(!isInRanges(text, ranges), text);
    assert.ok(!isInRanges('192.0.2.1', []), 'an empty list');
  });
});

it('isPublicAddress returns false for text that is not an IP address', () => {
  assert.ok(isPublicAddress('8.8.8.8'));
  for (const text of ['', 'x', 'localhost', '1.2.3.4:80']) assert.equal(isPublicAddress(text), false, text);
});

describe('networkOf', () => {
  for (const [address, network] of [
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::ffff:cb00:7107', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:2::/64'],
    ['fe80::1%eth0', 'fe80::/64'],
    ['', ''],
    ['not an address', 'not an address'],
  ] as const) {
    it(`counts ${JSON.stringify(address)} as ${JSON.stringify(network)}`, () => {
      assert.equal(networkOf(address), network);
    });
  }
});

it('the networks of an address lead from that of a customer to its own', () => {
  assert.deepEqual(networksOf('2001:db8:1:2ff::1'), ['2001:db8:1::/48', '2001:db8:1:200::/56', '2001:db8:1:2ff::/64']);
  for (const address of ['203.0.113.7', '::ffff:203.0.113.7']) assert.deepEqual(networksOf(address), ['203.0.113.7']);
  assert.deepEqual(networksOf('not an address'), ['not an address']);
});
