import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PHONE_PROBLEMS } from '../../src/domain/chat/phone.ts';
import { parseRecipient, parseRecipientQuery, USER_ID_PROBLEM } from '../../src/domain/chat/recipient.ts';

describe('a recipient', () => {
  it('is a number with its country', () => {
    assert.deepEqual(parseRecipient('+1 (416) 555-0123'), { to: '+14165550123', country: 'CA' });
    assert.equal(parseRecipient('+800 1234 5678'), PHONE_PROBLEMS.nowhere);
    assert.deepEqual(parseRecipientQuery(' 14165550123'), { to: '+14165550123' });
  });

  for (const id of ['US.13491208655302741918', 'AT.a', `BR.${'Z9'.repeat(64)}`, 'US.ENT.11815799212886844830']) {
    it(`is the user id ${id.slice(0, 30)} in the country of its prefix`, () => {
      assert.deepEqual(parseRecipient(id), { to: id, country: id.slice(0, 2) });
      assert.deepEqual(parseRecipientQuery(id), { to: id });
    });
  }

  for (const text of ['US.', 'us.123', 'ZZ.123', 'US.1 2', 'US.12.3', 'US.ENT.', `US.${'1'.repeat(129)}`, 'US.1\n']) {
    it(`is not ${JSON.stringify(text.slice(0, 30))}`, () => assert.equal(parseRecipient(text), USER_ID_PROBLEM));
  }

  for (const text of ['', 'USA.123', 'whatsapp:+14165550123', '0014165550123', '14165550123', '.123']) {
    it(`is not ${JSON.stringify(text)}, which looks like a number`, () =>
      assert.equal(parseRecipient(text), PHONE_PROBLEMS.form));
  }
});
