import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { RULES } from '../../src/domain/bounces/rules/rules.ts';
import { expression } from '../../src/domain/bounces/rules/expression.ts';
import { classifyBounce, statedReason } from '../../src/domain/bounces/bounces.ts';
import { SUPPRESSING } from '../../src/domain/email/suppression.ts';
import { BOUNCE_REASONS, type BounceReason } from '../../src/domain/email/email.ts';
import { REPLIES_IN_ENGLISH } from './bounce-replies.ts';
import { REPLIES_IN_OTHER_LANGUAGES } from './bounce-languages.ts';
import { processorMs } from '../support/processor-time.ts';

function repliesFor(reason: BounceReason): readonly string[] {
  return [...REPLIES_IN_ENGLISH[reason], ...(REPLIES_IN_OTHER_LANGUAGES[reason] ?? [])];
}

function assertReasons(cases: readonly (readonly [reply: string, BounceReason | undefined])[]): void {
  for (const [reply, reason] of cases) assert.equal(statedReason(reply), reason, reply);
}

describe('the reason of a bounce', () => {
  for (const reason of BOUNCE_REASONS) {
    it(`${reason}: is read from the replies of servers`, () => {
      const wrong = repliesFor(reason)
        .map((reply) => ({ reply, ...classifyBounce(reply) }))
        .filter((actual) => actual.reason !== reason || actual.suppress !== SUPPRESSING[reason]);
      assert.deepEqual(wrong, []);
      assert.ok(repliesFor(reason).length > 0);
    });
  }

  it('suppresses by the table of the contract', () => {
    assert.deepEqual(
      BOUNCE_REASONS.filter((reason) => SUPPRESSING[reason]),
      ['mailbox_not_found', 'mailbox_inactive', 'dns_failure', 'policy_block', 'provider_suppressed', 'unknown'],
    );
  });

  it('is undefined if neither words nor codes determine one, and is then shown as unknown', () => {
    for (const reply of repliesFor('unknown')) {
      assert.equal(statedReason(reply), undefined, reply);
      assert.deepEqual(classifyBounce(reply), { reason: 'unknown', suppress: true });
    }
  });

  it('is the same in the report of a filter or a mail server and before boilerplate', () => {
    const shapes = [
      (reply: string) => `550 permanent failure for one or more recipients (ada@shop.example:${reply})`,
      (reply: string) => `SMTP error from remote mail server after pipelined end of data: ${reply}`,
      (reply: string) => `delivery temporarily suspended: host mx.shop.example[192.0.2.9] said: ${reply}`,
      (reply: string) => `192.0.2.9 does not like recipient.\nRemote host said: ${reply}\nGiving up on 192.0.2.9.`,
      (reply: string) => `${reply} Please contact your mail administrator for assistance.`,
      (reply: string) => `${reply} [mx3.shop.example 4f1A9zQ]`,
    ];
    for (const reason of BOUNCE_REASONS) {
      if (reason === 'unknown') continue;
      for (const reply of repliesFor(reason).filter((text) => /^5\d\d[ -](?!.*expired)/.test(text))) {
        for (const shape of shapes) assert.equal(statedReason(shape(reply)), reason, shape(reply));
      }
    }
  });

  it('is the same in capitals, on many lines and in odd spaces', () => {
    const shapes = [
      (reply: string) => reply.replaceAll(' ', '  '),
      (reply: string) => reply.replaceAll(' ', '\r\n '),
      (reply: string) => `smtp;${reply}`,
      (reply: string) => `host mx.spam-quota.example[192.0.2.9] said: ${reply} (in reply to RCPT TO command)`,
    ];
    for (const reason of BOUNCE_REASONS) {
      if (reason === 'unknown') continue;
      for (const reply of repliesFor(reason)) {
        for (const shape of shapes) assert.equal(statedReason(shape(reply)), reason, shape(reply));
        // A name like RecipientNotFound is one word in capitals.
        const capitals = reply.toUpperCase();
        if (!/[a-z][A-Z]/.test(reply)) assert.equal(statedReason(capitals), reason, capitals);
      }
    }
  });

  it('is read from contractions, accents, entities, joined words and help pages', () => {
    assertReasons([
      ["The account doesn't exist", 'mailbox_not_found'],
      ['The account doesn’t exist', 'mailbox_not_found'],
      ['Skrzynka przepełniona', 'mailbox_full'],
      ['Ящик переполнён', 'mailbox_full'],
      ['mailbox&nbsp;full', 'mailbox_full'],
      ['QuotaExceeded', 'mailbox_full'],
      ['see http://help.example.com/overquota', 'mailbox_full'],
      ['see https://support.example.com/?p=DisabledUser', 'mailbox_inactive'],
      ['listed at http://www.uribl.com/', 'spam_block'],
      ['550 5.1.7', 'content_rejected'],
    ]);
  });

  it('does not depend on the words in an address, a host or a help page', () => {
    for (const name of ['spam', 'quota.exceeded', 'user-unknown', 'virus', 'relay.denied', 'blacklist']) {
      assertReasons([
        [`550 5.1.1 <${name}@shop.example>: Recipient address rejected: User unknown`, 'mailbox_not_found'],
        [`552 5.2.2 <ada@${name}.shop.example> mailbox full`, 'mailbox_full'],
        [`550 ${name}@shop.example`, undefined],
      ]);
    }
    assertReasons([['554 mx.spam.virus.example ESMTP', undefined]]);
  });
});

describe('a reply that matches two reasons', () => {
  it('is judged by its words before its codes', () => {
    assertReasons([
      ['552 5.1.1 Recipient overquota', 'mailbox_full'],
      ['550 5.2.1 User unknown', 'mailbox_not_found'],
      ['550 5.1.1 too many recipients this hour', 'rate_limited'],
      ['550 5.7.1 Mailbox is full', 'mailbox_full'],
      ['550 5.1.1 blocked using zen.spamhaus.org', 'reputation_block'],
    ]);
  });

  it('the cause beats what follows from it', () => {
    assertReasons([
      ['421 4.7.0 rate limited due to IP reputation', 'reputation_block'],
      ['550 5.2.1 Mailbox unavailable. Your IP address 192.0.2.7 is blacklisted', 'reputation_block'],
      ['421 4.7.27 rate limited: SPF did not pass', 'authentication_failure'],
      ['550 5.7.1 rejected by policy: DMARC', 'authentication_failure'],
      ['552 5.2.2 out of storage space and inactive', 'mailbox_full'],
      ['550 5.7.1 policy: mailbox does not exist', 'mailbox_not_found'],
    ]);
  });

  it("a sender's fault never suppresses the recipient", () => {
    for (const reply of [
      '450 4.1.8 <news@shop.invalid>: Sender address rejected: Domain not found',
      '550 Sender verify failed',
      '550 5.7.25 no PTR record for your address',
      '550 5.7.1 Access denied, your IP is not allowed by local policy',
      '501 HELO requires a valid host name',
      '530 5.7.0 Issue STARTTLS first',
      '535 5.7.8 That username and password are wrong',
      '451 4.3.0 Temporary system problem, try again later',
    ]) {
      assert.equal(classifyBounce(reply).suppress, false, reply);
    }
  });

  it('a reply before RCPT TO is not about the recipient', () => {
    for (const reply of ['550 5.1.1 User unknown', '550 5.7.1 Rejected by policy', '550 Domain does not exist']) {
      assertReasons([
        [`host mx.shop.example[192.0.2.9] said: ${reply} (in reply to MAIL FROM command)`, 'reputation_block'],
        [`SMTP error from remote mail server after MAIL FROM:<ada@shop.example>: ${reply}`, 'reputation_block'],
        [`host mx.shop.example said: ${reply} (in reply to EHLO command)`, 'reputation_block'],
      ]);
    }
    assertReasons([
      ['host mx.shop.example[192.0.2.9] refused to talk to me: 554 Go away', 'reputation_block'],
      ['host mx.shop.example[192.0.2.9] refused to talk to me: 421 4.3.2 System busy', 'rate_limited'],
      ['host mx.shop.example[192.0.2.9] refused to talk to me: 521 Host does not accept mail', 'dns_failure'],
      ['host mx.shop.example[192.0.2.9] said: 452 4.3.1 Insufficient storage (in reply to MAIL FROM)', 'mailbox_full'],
    ]);
  });

  it('Gmail explains its spam to us in replies about something else', () => {
    assertReasons([
      [
        '550-5.7.1 Encoded-word syntax is not permitted in message header From. To reduce the amount of\n550-5.7.1 spam sent to Gmail, this message has been blocked.',
        'content_rejected',
      ],
    ]);
  });
});

describe('a reply of codes alone', () => {
  it('goes by the enhanced code, the first that is specific', () => {
    assertReasons([
      ['550 5.1.1', 'mailbox_not_found'],
      ['550 5.1.2', 'dns_failure'],
      ['550 5.2.0', undefined],
      ['450 4.2.0', 'rate_limited'],
      ['550 5.4.7', 'rate_limited'],
      ['503 5.5.1', 'rate_limited'],
      ['550 5.2.1', 'mailbox_inactive'],
      ['452 4.2.2', 'mailbox_full'],
      ['552 5.2.3', 'message_too_large'],
      ['451 4.4.2', 'rate_limited'],
      ['554 5.6.1', 'content_rejected'],
      ['550 5.7.13', 'mailbox_inactive'],
      ['550 5.7.25', 'reputation_block'],
      ['550 5.7.640', 'reputation_block'],
      ['550 5.7.0', 'policy_block'],
      ['451 4.7.1', 'rate_limited'],
      ['554 5.0.0 (5.2.2)', 'mailbox_full'],
      ['550-5.1.1\r\n550 5.1.1', 'mailbox_not_found'],
      ['#5.1.1', 'mailbox_not_found'],
    ]);
  });

  it('goes by the basic code where there is no other', () => {
    assertReasons([
      ['421', 'rate_limited'],
      ['452', 'mailbox_full'],
      ['521', 'dns_failure'],
      ['551', 'mailbox_not_found'],
      ['552', 'mailbox_full'],
      ['556', 'dns_failure'],
      ['550', undefined],
      ['554', undefined],
    ]);
  });

  it('does not take an address or a version for a code', () => {
    assertReasons([
      ['550 relay-5.1.1.4', undefined],
      ['554 5.2.2.1', undefined],
      ['550 v15.1.1', undefined],
    ]);
  });

  it('is judged by a 5xx code of the address before words that accompany any refusal', () => {
    assertReasons([
      ['550 5.1.1 <ada@shop.example> not accepted, please try again', 'mailbox_not_found'],
      ['450 4.1.1 <ada@shop.example> not accepted, please try again', 'rate_limited'],
    ]);
  });
});

describe('any text', () => {
  it('has a reason', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 3_000 }), (text) => {
        const { reason, suppress } = classifyBounce(text);
        assert.equal(suppress, SUPPRESSING[reason]);
      }),
    );
  });

  it('is read up to 2,000 characters', () => {
    assert.equal(statedReason(`${'x '.repeat(990)}mailbox full`), 'mailbox_full');
    assert.equal(statedReason(`${'x '.repeat(1_000)}mailbox full`), undefined);
  });
});

/** What an expression might try again and again: its own words, and what lies between them. */
function unitsOf(expression: RegExp): string[] {
  const own = expression.source.match(/[@\p{L}]{3,}/gu) ?? [];
  return [...new Set(own), 'a', ' ', '. ', '@', '@ip ', 'no ', 'not ', 'is ', 'x.x ', '1', ':'];
}

/** Milliseconds of the fastest of three runs: a slow one may be the machine's fault, a fast one cannot. */
function fastest(run: () => unknown): number {
  let best = Infinity;
  for (let i = 0; i < 3 && best >= 5; i++) {
    const started = processorMs();
    run();
    best = Math.min(best, processorMs() - started);
  }
  return best;
}

function assertLinear(run: (text: string) => unknown, unit: string, length: number): void {
  const time = (size: number): number => fastest(() => run(unit.repeat(Math.ceil(size / unit.length))));
  const whole = time(length);
  if (whole < 50) return;
  const half = time(length / 2);
  assert.ok(whole < 4 * half, `${JSON.stringify(unit)}: ${half} ms, then ${whole} ms`);
}

describe('hostile text', () => {
  it('is judged in time linear to its length', () => {
    for (const { phrases } of RULES) {
      const words = expression(phrases);
      for (const unit of unitsOf(words)) {
        assertLinear((text) => words.test(text), unit, 20_000);
        assertLinear((text) => words.test(text), `${unit} `, 20_000);
      }
    }
  });

  it('of 100 kB takes no longer than its first 2,000 characters', () => {
    const units = 'a a. a@ @a <a 1. 550- http:// x- aB &lt; \u00E9 \uD83D \u0000'.split(' ');
    for (const unit of [...units, '5.1.1 ', "n't ", 'host a ', 'server a ', 'smtp error from remote server ']) {
      assertLinear(classifyBounce, unit, 100_000);
      assert.deepEqual(
        classifyBounce(unit.repeat(Math.ceil(100_000 / unit.length))),
        classifyBounce(unit.repeat(2_000).slice(0, 2_000)),
      );
    }
  });
});
