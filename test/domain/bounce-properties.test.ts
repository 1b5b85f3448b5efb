import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { classifyBounce, statedReason } from '../../src/domain/bounces/bounces.ts';
import { readReplies } from './bounces/accuracy.ts';

const REPLIES = readReplies('labelled.tsv').filter(({ reply }) => /^[45]\d\d[ -]/.test(reply) && reply.length < 500);
const reply = fc.constantFrom(...REPLIES.map((labelled) => labelled.reply));

/** Words that name a reason where they are not part of a name. */
const LOADED_WORDS =
  'spam quota virus blacklist blocked spamhaus dmarc policy relay unknown disabled full limit dns'.split(' ');
const loadedLabel = fc
  .tuple(fc.constantFrom(...LOADED_WORDS), fc.constantFrom('-mail', 'x', '-1', ''))
  .map(([word, end]) => `${word}${end}`);
const host = fc.oneof(
  fc
    .tuple(fc.constantFrom('mx', 'relay-2'), loadedLabel, fc.constantFrom('shop.example', 'shop.com'))
    .map((labels) => labels.join('.')),
  fc.tuple(loadedLabel, fc.constantFrom('example', 'de', 'app')).map((labels) => labels.join('.')),
);
const address = fc.tuple(loadedLabel, host).map(([local, domain]) => `<${local}@${domain}>`);
const ip = fc.ipV4();
const queueId = fc.stringMatching(/^[0-9A-F]{10,12}$/);

describe('the variable parts of a reply', () => {
  const unchanged = (decorated: fc.Arbitrary<readonly [string, string]>): void => {
    fc.assert(
      fc.property(decorated, ([plain, other]) => assert.equal(statedReason(other), statedReason(plain), other)),
    );
  };

  it('do not change the reason: the name and address of the host that quotes it', () => {
    unchanged(fc.tuple(reply, host, ip).map(([text, name, from]) => [text, `host ${name}[${from}] said: ${text}`]));
  });

  it('do not change the reason: a host, an IP address or a queue id at its end', () => {
    const end = fc.oneof(
      host.map((name) => `[${name}]`),
      ip.map((value) => `[${value}]`),
      queueId.map((id) => `(${id})`),
    );
    unchanged(fc.tuple(reply, end).map(([text, suffix]) => [text, `${text} ${suffix}`]));
  });

  it('do not change the reason: the words in the address that it names', () => {
    unchanged(
      fc
        .tuple(
          fc.constantFrom('550 5.1.1 #: User unknown', '552 5.2.2 #: mailbox full', '550 5.2.1 # is disabled'),
          address,
        )
        .map(([text, named]) => [text.replace('#', '<ada@shop.example>'), text.replace('#', named)]),
    );
  });
});

describe('a transient refusal', () => {
  it('does not suppress if its words are unknown', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('421', '450', '451', '452', '454'),
        fc.constantFrom('', ' 4.1.1', ' 4.1.2', ' 4.2.0', ' 4.2.1', ' 4.3.0', ' 4.4.4', ' 4.7.0', ' 4.7.1'),
        fc.stringMatching(/^( [b-z]{3,8}){0,5}$/),
        (basic, enhanced, words) => assert.equal(classifyBounce(basic + enhanced + words).suppress, false),
      ),
    );
  });

  it('does not suppress for a domain, a rule or a relay', () => {
    for (const words of [
      'Domain not found',
      'Rejected by company policy',
      'Relay access denied',
      'Recipient address rejected',
    ]) {
      assert.equal(classifyBounce(`450 4.7.1 <ada@shop.example>: ${words}`).suppress, false, words);
      assert.equal(classifyBounce(`550 5.7.1 <ada@shop.example>: ${words}`).suppress, true, words);
    }
  });

  it('suppresses only if it names the recipient as the lasting cause', () => {
    assert.equal(statedReason('450 4.1.1 <ada@shop.example>: User unknown in local table'), 'mailbox_not_found');
    assert.equal(statedReason('450 4.2.1 <ada@shop.example>: this mailbox has been disabled'), 'mailbox_inactive');
    assert.equal(statedReason('450 4.2.1 <ada@shop.example>: mailbox temporarily disabled'), 'rate_limited');
    assert.equal(
      statedReason('450 4.1.1 <ada@shop.example>: User unknown, address verification in progress'),
      'rate_limited',
    );
  });
});

describe('a permanent refusal', () => {
  it('is judged by its code if its words are unknown', () => {
    const words = fc.stringMatching(/^( [b-z]{3}q){0,5}$/);
    fc.assert(
      fc.property(words, (text) => {
        assert.equal(statedReason(`550 5.1.1${text}`), 'mailbox_not_found');
        assert.equal(statedReason(`550 5.1.2${text}`), 'dns_failure');
        assert.equal(statedReason(`552 5.2.2${text}`), 'mailbox_full');
        assert.equal(statedReason(`550 5.7.26${text}`), 'authentication_failure');
      }),
    );
  });

  it('with 5.7.x suppresses only if its words match a rule', () => {
    assert.equal(statedReason('550 5.7.1 Rejected by the policy of our company'), 'policy_block');
    assert.equal(statedReason('550 5.7.1 Rejected by local policy'), 'reputation_block');
    assert.equal(statedReason('550 5.7.1 Access denied'), 'reputation_block');
    assert.equal(statedReason('550 5.7.0 Qwrtz'), 'reputation_block');
  });

  it('is the sender’s fault where a server cannot resolve the sender’s domain', () => {
    for (const words of [
      'return email domain has no DNS record',
      'MAIL FROM domain does not exist',
      'sender: host unknown',
    ]) {
      assert.equal(statedReason(`550 5.7.1 ${words}`), 'reputation_block', words);
    }
    assert.equal(statedReason('550 5.1.2 Host unknown'), 'dns_failure');
  });
});

describe('a transcript of several replies', () => {
  it('is decided by the last permanent one that is no consequence of another', () => {
    for (const [transcript, reason] of [
      ['450 4.7.1 Greylisted, try again later 550 5.1.1 User unknown', 'mailbox_not_found'],
      ['550 5.1.1 User unknown 503 5.5.1 Need RCPT command', 'mailbox_not_found'],
      ['552 5.2.2 Mailbox full 554 5.5.1 Error: no valid recipients', 'mailbox_full'],
      ['554 5.7.1 Blocked using zen.spamhaus.org 550 5.1.1 User unknown', 'mailbox_not_found'],
      ['421 4.3.2 Too many connections\n450 4.2.2 Mailbox full', 'mailbox_full'],
      ['550 5.7.350 Remote server returned message detected as spam -> 554 rejected', 'spam_block'],
    ] as const) {
      assert.equal(statedReason(transcript), reason, transcript);
    }
  });

  it('with one reply on several lines is that reply', () => {
    assert.equal(
      statedReason(
        '550-5.2.1 The user you are trying to contact is\n550-5.2.1 receiving mail too quickly\n550 5.2.1 9 - gsmtp',
      ),
      'rate_limited',
    );
  });
});
