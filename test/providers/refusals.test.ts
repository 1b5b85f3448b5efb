import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { BOUNCE_REASONS } from '../../src/domain/email/email.ts';
import type { SendOutcome } from '../../src/domain/email/retry.ts';
import { smtp } from '../../src/providers/smtp/smtp.ts';
import { addresses, outgoing } from './outgoing.ts';
import { answering, httpServer } from './servers.ts';
import { at, CALL, simulator } from './simulator.ts';
import { type Script, smtpScript } from './smtp-script.ts';

async function sendWithScript(t: TestContext, script: Script, to = addresses(1)): Promise<SendOutcome> {
  const server = await smtpScript(t, script);
  const [outcome] = await smtp(server.url).send([outgoing({ to })], CALL);
  return outcome as SendOutcome;
}

/** Answers each RCPT TO by its address; all others are accepted. */
const byAddress = (replies: Readonly<Record<string, string>>) => (line: string) =>
  replies[/<(.*)>/.exec(line)?.[1]?.split('@')[0] ?? ''] ?? '250 ok';

describe('an SMTP refusal of a recipient or the message is a bounce with its reason', () => {
  for (const reason of BOUNCE_REASONS) {
    test(`by the simulator: ${reason}`, async (t) => {
      const { smtpUrl, inbox } = await simulator(t);
      const [outcome] = await smtp(smtpUrl).send([outgoing({ to: [`bounced+${reason}@example.net`] })], CALL);
      assert.ok(outcome?.kind === 'bounced');
      assert.equal(outcome.reason, reason);
      assert.match(outcome.detail, /^The SMTP server answered: 5\d\d /);
      assert.deepEqual(await inbox(), []);
    });
  }

  test('but one by the simulated Postmark of an unknown reason rejects the message', async (t) => {
    const { postmarkUrl } = await simulator(t);
    const [outcome] = await at(postmarkUrl).send([outgoing({ to: ['bounced+spam@example.net'] })], CALL);
    assert.ok(outcome?.kind === 'rejected', outcome?.kind);
    assert.match(outcome.detail, /use one of bounced\+mailbox_not_found@example\.com, /);
  });

  for (const local of ['bounced+spam', 'bounced+suppressed', 'bounced+mailbox']) {
    test(`but one by the simulator of ${local}@, an unknown reason, is about the content`, async (t) => {
      const { smtpUrl } = await simulator(t);
      const [outcome] = await smtp(smtpUrl).send([outgoing({ to: [`${local}@example.net`] })], CALL);
      assert.ok(outcome?.kind === 'bounced');
      assert.equal(outcome.reason, 'content_rejected', 'it suppresses no address');
      assert.match(outcome.detail, /use one of bounced\+mailbox_not_found@example\.com, /);
    });
  }

  test('also after the data', async (t) => {
    const outcome = await sendWithScript(t, { message: '552 5.3.4 message too big' });
    const detail = 'The SMTP server answered: 552 5.3.4 message too big';
    assert.deepEqual(outcome, { kind: 'bounced', reason: 'message_too_large', detail });
  });

  test('after the data, for one of several recipients without its name, suppresses no address', async (t) => {
    const message = '550 5.1.1 user unknown';
    assert.equal((await sendWithScript(t, { message }, addresses(2))).kind, 'rejected');
    assert.equal((await sendWithScript(t, { message })).kind, 'bounced');
    assert.equal((await sendWithScript(t, { message: '554 5.7.1 spam' }, addresses(2))).kind, 'bounced');
  });

  for (const EHLO of ['250 here', '250-here\r\n250 PIPELINING']) {
    const refusedBefore = { r0: '550 5.1.1 user unknown', r1: '450 4.2.0 greylisted' };
    const refused = [
      {
        recipient: 'r0@example.net',
        reason: 'mailbox_not_found',
        detail: 'The SMTP server answered: 550 5.1.1 user unknown',
      },
    ];
    const deferred = [
      {
        recipient: 'r1@example.net',
        detail: 'The SMTP server answered: 450 4.2.0 greylisted',
        isOverLimit: false,
      },
    ];
    for (const step of ['DATA', 'message'] as const) {
      test(`to ${step} leaves earlier refusals of recipients as they are (${JSON.stringify(EHLO)})`, async (t) => {
        const script = { EHLO, RCPT: byAddress(refusedBefore), [step]: '554 5.7.1 spam' };
        const detail = 'The SMTP server answered: 554 5.7.1 spam';
        const outcome = await sendWithScript(t, script, addresses(4));
        assert.deepEqual(outcome, { kind: 'bounced', reason: 'spam_block', detail, refused, deferred });
      });

      test(`to ${step} concerns the only recipient not refused before (${JSON.stringify(EHLO)})`, async (t) => {
        const script = { EHLO, RCPT: byAddress(refusedBefore), [step]: '550 5.2.1 mailbox disabled' };
        const detail = 'The SMTP server answered: 550 5.2.1 mailbox disabled';
        const outcome = await sendWithScript(t, script, addresses(3));
        assert.deepEqual(outcome, { kind: 'bounced', reason: 'mailbox_inactive', detail, refused, deferred });
        assert.equal((await sendWithScript(t, script, addresses(4))).kind, 'rejected');
      });
    }
  }

  test('of all recipients for several reasons has the reason that suppresses no address', async (t) => {
    const RCPT = byAddress({ r0: '550 5.1.1 user unknown', r1: '552 5.2.2 mailbox full' });
    const outcome = await sendWithScript(t, { RCPT }, addresses(2));
    assert.deepEqual(outcome, {
      kind: 'bounced',
      reason: 'mailbox_full',
      detail: 'The SMTP server answered: 552 5.2.2 mailbox full',
      refused: [
        {
          recipient: 'r0@example.net',
          reason: 'mailbox_not_found',
          detail: 'The SMTP server answered: 550 5.1.1 user unknown',
        },
        {
          recipient: 'r1@example.net',
          reason: 'mailbox_full',
          detail: 'The SMTP server answered: 552 5.2.2 mailbox full',
        },
      ],
    });
  });
});

describe('an SMTP refusal of our account in any phase', () => {
  for (const reply of [
    '554 5.7.1 <r0@example.net>: Relay access denied',
    '550 5.7.1 Unable to relay: you are not permitted to relay through this server',
    '530 5.7.0 Authentication required',
    '553 5.7.1 <hello@acme.example>: Sender address rejected: not owned by user u',
    '554 5.7.1 <unknown[192.0.2.1]>: Client host rejected: Access denied',
    '554 5.2.252 SendAsDenied; u not allowed to send as hello@acme.example',
  ]) {
    test(reply, async (t) => {
      for (const step of ['RCPT', 'DATA', 'message']) {
        assert.equal((await sendWithScript(t, { [step]: reply })).kind, 'account', step);
      }
    });
  }
});

describe('an email that is accepted for some recipients only', () => {
  test('by SMTP is sent and names the others', async (t) => {
    const RCPT = byAddress({
      r0: '550 5.1.1 user unknown',
      r2: '450 4.2.0 greylisted',
      r3: '452 4.2.2 over quota',
      r4: '451 4.1.1 no such user yet',
      r5: '554 5.7.1 relay access denied',
    });
    const outcome = await sendWithScript(t, { RCPT }, addresses(7));
    assert.ok(outcome.kind === 'sent');
    assert.deepEqual(
      outcome.refused?.map(({ recipient, reason }) => [recipient.split('@')[0], reason]),
      [
        ['r0', 'mailbox_not_found'],
        // About our account.
        ['r5', 'reputation_block'],
      ],
    );
    assert.equal(outcome.refused[0]?.detail, 'The SMTP server answered: 550 5.1.1 user unknown');
    assert.deepEqual(
      outcome.deferred?.map(({ recipient }) => recipient.split('@')[0]),
      ['r2', 'r3', 'r4'],
    );
    assert.equal(outcome.deferred[0]?.detail, 'The SMTP server answered: 450 4.2.0 greylisted');
  });

  for (const [reply, isOverLimit] of [
    ['452 4.5.3 Error: too many recipients', true],
    ['452 4.5.3 Your message has too many recipients. For more information, visit https://mail.example', true],
    ['452 4.5.3 Recipients belong to multiple regions ATTR38', true],
    ['452 too many recipients', true],
    ['452 Too many RCPT TO commands', true],
    ['552 5.5.3 Too many recipients', true],
    ['552 Too many recipients', true],
    ['550 5.5.3 Too many recipients', true],
    ['550 Maximum number of recipients exceeded', true],
    ['554 Recipient count exceeds 50.', true],
    ['452 Recipient limit reached for this message', true],
    ['452 4.3.1 Insufficient system storage', false],
    ['452 4.2.2 over quota', false],
    ['450 4.7.1 Too many recipients in this hour', false],
    ['451 4.7.1 try again later', false],
  ] as const)
    test(`by SMTP is deferred for the others by ${reply}`, async (t) => {
      const outcome = await sendWithScript(t, { RCPT: byAddress({ r1: reply }) }, addresses(2));
      const detail = `The SMTP server answered: ${reply}`;
      const deferred = [{ recipient: 'r1@example.net', detail, isOverLimit }];
      assert.ok(outcome.kind === 'sent');
      assert.deepEqual([outcome.refused, outcome.deferred], [undefined, deferred]);
    });

  for (const reply of [
    '552 5.2.2 mailbox full',
    '550 5.1.1 user unknown',
    '554 5.7.1 too many recipients of this sender in an hour',
    '550 5.7.1 message size exceeds the limit of the recipient',
  ])
    test(`by SMTP is bounced for the others by ${reply}`, async (t) => {
      const outcome = await sendWithScript(t, { RCPT: byAddress({ r1: reply }) }, addresses(2));
      assert.ok(outcome.kind === 'sent');
      assert.deepEqual([outcome.refused?.length, outcome.deferred], [1, undefined]);
    });

  test('by Postmark is sent and names the others', async (t) => {
    const { postmarkUrl, inbox } = await simulator(t);
    const inactive = 'Bounced+provider_suppressed@example.net';
    const emails = [outgoing({ to: ['a@example.net', inactive] }), outgoing({ to: [inactive] }), outgoing()];
    const [first, second, third] = await at(postmarkUrl).send(emails, CALL);
    const [, message] = await inbox();
    assert.ok(first?.kind === 'sent' && first.messageId === message?.id);
    assert.deepEqual(first.refused, [
      {
        recipient: inactive,
        reason: 'provider_suppressed',
        detail: 'Postmark no longer sends to this address: it is on its list of inactive addresses.',
      },
    ]);
    assert.ok(second?.kind === 'bounced' && second.reason === 'provider_suppressed');
    assert.ok(third?.kind === 'sent' && third.refused === undefined);
  });

  for (const [words, expected] of [
    ['r1@example.net', ['r1@example.net']],
    ['R2@example.net,  r0@example.net.', ['r0@example.net', 'r2@example.net']],
    ['r1@example.net. Inactive recipients are ones that have bounced.', ['r1@example.net']],
    ['xr1@example.net, r1@example.net.br, r1@example', []],
  ] as const) {
    test(`by Postmark names them in ${JSON.stringify(words)}`, async (t) => {
      const Message = `Message OK, but will not deliver to these inactive addresses: ${words}`;
      const url = await httpServer(t, answering({ body: { ErrorCode: 0, MessageID: 'x', Message } }));
      const [outcome] = await at(url).send([outgoing({ to: addresses(3) })], CALL);
      assert.ok(outcome?.kind === 'sent');
      assert.deepEqual(
        (outcome.refused ?? []).map(({ recipient }) => recipient),
        expected,
      );
    });
  }
});
