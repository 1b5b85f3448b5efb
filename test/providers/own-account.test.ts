import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { SUPPRESSING } from '../../src/domain/email/suppression.ts';
import type { SendOutcome } from '../../src/domain/email/retry.ts';
import { classifyRefusal, namedRecipients } from '../../src/providers/smtp/refusals.ts';

/** The reply to RCPT TO of the only recipient, or to the end of the message to one recipient. */
function outcomeOf(phase: string, reply: string): SendOutcome {
  const error = Object.assign(new Error(reply), { response: reply, responseCode: 550, recipient: 'ada@shop.example' });
  if (phase === 'data') return classifyRefusal(Object.assign(error, { command: 'DATA' }), 1, []);
  return classifyRefusal(Object.assign(error, { command: 'RCPT TO', rejectedErrors: [error] }), 1, []);
}

/**
 * Replies of relays and mail servers: the phase, the outcome, the words. `own-account.tsv` has wordings of issue trackers and
 * documentation and some of our own, of which the errors led to phrases; `own-account-unseen.tsv` was written before the rules.
 */
for (const file of ['own-account.tsv', 'own-account-unseen.tsv']) {
  const rows = readFileSync(new URL(file, import.meta.url), 'utf8')
    .trimEnd()
    .split('\n')
    .slice(1);
  describe(`a permanent reply in ${file}`, () => {
    for (const row of rows) {
      const [phase = '', kind, words = ''] = row.split('\t');
      test(`at ${phase} is ${kind}: ${words}`, () => {
        const outcome = outcomeOf(phase, words.replaceAll('\\r\\n', '\r\n'));
        assert.equal(outcome.kind, kind, JSON.stringify(outcome));
      });
    }
  });
}

describe('a reply to DATA', () => {
  for (const [reply, expected] of [
    ['550 5.1.1 user unknown', true],
    ['550 5.2.1 the mailbox of this user is disabled', true],
    ['550 5.4.4 domain does not exist', false],
    ['554 5.7.1 rejected by company policy', false],
    ['554 5.0.0 not found', false],
  ] as const) {
    test(`${expected ? 'suppresses, since it names' : 'suppresses nothing, since it does not name'} the mailbox: ${reply}`, () => {
      const outcome = outcomeOf('data', reply);
      assert.equal(outcome.kind === 'bounced' && SUPPRESSING[outcome.reason], expected);
    });
  }
});

test('a refusal of our account for one recipient among accepted ones suppresses no address', () => {
  const reply = '552 Message would take you over your relay quota of 500';
  const error = Object.assign(new Error(reply), { response: reply, responseCode: 552, recipient: 'ada@shop.example' });
  assert.deepEqual(
    namedRecipients([error]).refused?.map(({ reason }) => reason),
    ['reputation_block'],
  );
});

test('a refusal of the sender pauses it, one of the account pauses the organization until a second one is refused', () => {
  const scopeOf = (reply: string) => {
    const outcome = outcomeOf('data', reply);
    return outcome.kind === 'account' && outcome.scope;
  };
  assert.equal(scopeOf('550 The from address does not match a verified Sender Identity'), 'sender');
  assert.equal(scopeOf('550 Maximum credits exceeded'), 'organization');
});
