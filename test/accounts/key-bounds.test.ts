import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ServiceError } from '../../src/domain/errors.ts';
import { type KeyBounds, refuseBroaderKey } from '../../src/accounts/key-bounds.ts';

/** The bounds of an unlimited key, with changes. */
const key = (changes: Partial<KeyBounds> = {}): KeyBounds => ({
  preset: 'full_access',
  domain_ids: null,
  expires_at: null,
  allowed_ips: null,
  ...changes,
});
const FIRST = '2030-01-01T00:00:00.000Z';

/** The field that is refused, or undefined. */
function refusedAt(issuer: KeyBounds, requested: KeyBounds): string | undefined {
  try {
    refuseBroaderKey(issuer, requested);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof ServiceError, String(error));
    assert.equal(error.code, 'insufficient_scope');
    return error.param;
  }
}

describe('a key creates no key with more access than itself:', () => {
  for (const [issuer, requested, expected] of [
    [{}, {}, undefined],
    [{}, { domain_ids: ['a'], expires_at: FIRST, allowed_ips: ['10.0.0.0/8'] }, undefined],
    [{}, { preset: 'sending_access' }, undefined],
    [{ preset: 'read_only' }, { preset: 'read_only' }, undefined],
    [{ preset: 'read_only' }, { preset: 'full_access' }, 'preset'],
    [{ preset: 'sending_access' }, { preset: 'read_only' }, 'preset'],

    [{ domain_ids: ['a', 'b'] }, { domain_ids: ['b'] }, undefined],
    [{ domain_ids: ['a', 'b'] }, { domain_ids: ['a', 'c'] }, 'domain_ids.1'],
    [{ domain_ids: ['a', 'b'] }, {}, 'domain_ids'],

    [{ expires_at: FIRST }, { expires_at: FIRST }, undefined],
    [{ expires_at: FIRST }, { expires_at: '2030-01-01T01:00:00+01:00' }, undefined],
    [{ expires_at: FIRST }, { expires_at: '2030-01-01T00:00:00.001Z' }, 'expires_at'],
    [{ expires_at: FIRST }, { expires_at: '2030-01-01T00:00:00-01:00' }, 'expires_at'],
    [{ expires_at: FIRST }, {}, 'expires_at'],

    [{ allowed_ips: ['10.0.0.0/8'] }, { allowed_ips: ['10.0.0.0/8'] }, undefined],
    [{ allowed_ips: ['10.0.0.0/8'] }, { allowed_ips: ['10.1.0.0/16', '10.2.3.4'] }, undefined],
    [{ allowed_ips: ['10.0.0.0/8'] }, { allowed_ips: ['::ffff:10.1.2.3', '::ffff:10.1.0.0/112'] }, undefined],
    [{ allowed_ips: ['192.0.2.1', '2001:db8::/32'] }, { allowed_ips: ['2001:db8:1::/48', '192.0.2.1/32'] }, undefined],
    [{ allowed_ips: ['10.0.0.0/8'] }, { allowed_ips: ['10.0.0.0/7'] }, 'allowed_ips.0'],
    [{ allowed_ips: ['10.0.0.0/8'] }, { allowed_ips: ['10.1.2.3', '11.0.0.1'] }, 'allowed_ips.1'],
    [{ allowed_ips: ['0.0.0.0/0'] }, { allowed_ips: ['::/0'] }, 'allowed_ips.0'],
    [{ allowed_ips: ['::/0'] }, { allowed_ips: ['192.0.2.1'] }, 'allowed_ips.0'],
    [{ allowed_ips: ['2001:db8::/32'] }, { allowed_ips: ['2001:db8::/31'] }, 'allowed_ips.0'],
    [{ allowed_ips: ['10.0.0.0/8'] }, {}, 'allowed_ips'],
  ] as const satisfies [Partial<KeyBounds>, Partial<KeyBounds>, string | undefined][]) {
    it(`${JSON.stringify(issuer)} creates ${JSON.stringify(requested)}: ${expected ?? 'allowed'}`, () => {
      assert.equal(refusedAt(key(issuer), key(requested)), expected);
    });
  }
});
