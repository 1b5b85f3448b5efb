import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ShownRecord } from '../../src/domain/senders/sender-records.ts';
import { nameInZone, zoneFile } from '../../src/domain/senders/zone-file.ts';

const base: ShownRecord = {
  ...{ record: 'OWNERSHIP', type: 'TXT', name: 'mail.example.com', value: 'token=a', priority: null },
  ...{ ttl: 3_600, required: true, status: 'pending', found: null, error: null },
};

describe('a zone file', () => {
  it('has a line for each record, with complete names', () => {
    const cname: ShownRecord = { ...base, type: 'CNAME', name: 'pm.mail.example.com', value: 'pm.mtasv.net' };
    const expected = 'mail.example.com. 3600 IN TXT "token=a"\npm.mail.example.com. 3600 IN CNAME pm.mtasv.net.\n';
    assert.equal(zoneFile([base, cname]), expected);
  });

  it('splits a long text into strings of 255 bytes and escapes quotation marks', () => {
    const value = `${'k'.repeat(255)}rest`;
    assert.equal(zoneFile([{ ...base, value }]), `mail.example.com. 3600 IN TXT "${'k'.repeat(255)}" "rest"\n`);
    assert.equal(zoneFile([{ ...base, value: 'a"b\\c' }]), 'mail.example.com. 3600 IN TXT "a\\"b\\\\c"\n');
  });
});

describe('the name of a record in its zone', () => {
  for (const [name, domain, zone, relative] of [
    ['example.com', 'example.com', 'example.com', '@'],
    ['_dmarc.example.com', 'mail.example.com', 'example.com', '_dmarc'],
    ['sw1._domainkey.mail.example.co.uk', 'mail.example.co.uk', 'example.co.uk', 'sw1._domainkey.mail'],
    ['_sendwright.acme.uk.com', 'acme.uk.com', 'acme.uk.com', '_sendwright'],
    // The company that owns the suffix has a zone for it.
    ['_sendwright.uk.com', 'uk.com', 'uk.com', '_sendwright'],
  ] as const) {
    it(`${name} is ${relative} in ${zone}`, () => {
      assert.deepEqual(nameInZone(name, domain), { zone, name: relative });
    });
  }
});
