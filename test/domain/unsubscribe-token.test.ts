import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { newId } from '../../src/lib/ids.ts';
import { parseUnsubscribeToken, makeUnsubscribeTokens } from '../../src/domain/email/unsubscribe-token.ts';

const SECRET = 'a secret key for unsubscribe links in tests';
const tokens = makeUnsubscribeTokens(SECRET);
const addressee = { orgId: newId('org', 1), emailId: newId('em', 2), position: 7 };
const token = tokens.make(addressee);

describe('an unsubscribe token', () => {
  it('identifies its recipient in every process with the same secret, and no other', () => {
    assert.ok(tokens.verify(addressee, token));
    assert.ok(makeUnsubscribeTokens(SECRET).verify(addressee, token));
    assert.ok(!makeUnsubscribeTokens(`${SECRET}s`).verify(addressee, token));
    for (const other of [{ orgId: newId('org', 1) }, { emailId: newId('em', 2) }, { position: 70 }, { position: 0 }]) {
      assert.ok(!tokens.verify({ ...addressee, ...other }, token), JSON.stringify(other));
    }
  });

  it('contains the organization and email it claims, and nothing personal', () => {
    assert.deepEqual(parseUnsubscribeToken(token), { emailId: addressee.emailId, position: 7 });
    assert.match(token, /^em_[0-9a-z]{26}\.7\.[A-Za-z0-9_-]{22}$/);
    assert.ok(!token.includes(addressee.orgId.slice(4)));
  });

  it('is none when any of its characters is another one, is missing or is added', () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/ .%\0\né';
    const isOurs = (text: string) => {
      const claim = parseUnsubscribeToken(text);
      return claim !== undefined && tokens.verify({ orgId: addressee.orgId, ...claim }, text);
    };
    assert.ok(isOurs(token));
    for (let at = 0; at <= token.length; at++) {
      const [before, after] = [token.slice(0, at), token.slice(at)];
      if (after !== '') assert.ok(!isOurs(before + after.slice(1)));
      for (const character of alphabet) {
        if (character !== after[0]) assert.ok(!isOurs(before + character + after.slice(1)), before + character);
        assert.ok(!isOurs(before + character + after), before + character);
      }
    }
  });

  it('claims nothing when it is anything else', () => {
    for (const text of ['', '.', '..', 'x', `${addressee.emailId}.07.${'A'.repeat(22)}`, 'A'.repeat(100_000)]) {
      assert.equal(parseUnsubscribeToken(text), undefined, text.slice(0, 80));
    }
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => parseUnsubscribeToken(text) === undefined));
  });
});
