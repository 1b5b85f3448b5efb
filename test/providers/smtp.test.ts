import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test, type TestContext } from 'node:test';
import type { SendOutcome } from '../../src/domain/email/retry.ts';
import { requiresTls, smtp } from '../../src/providers/smtp/smtp.ts';
import { eventually } from '../support/eventually.ts';
import { addresses, outgoing } from './outgoing.ts';
import { tcpServer } from './servers.ts';
import { CALL, simulator } from './simulator.ts';
import { type Script, smtpScript } from './smtp-script.ts';

/** Larger than what fits into the buffers between us and the server. */
const LARGE = outgoing({ text: `${'x'.repeat(70)}\n`.repeat(100_000) });

async function sendOne(
  url: string,
  email = outgoing(),
  times?: { connectMs?: number; transferMs: number; replyMs: number },
) {
  const [outcome] = await smtp(url, times).send([email], CALL);
  return outcome as SendOutcome;
}

/** The same, signed: a signature needs the whole message before its first byte may leave. */
const SIGNED = signed(LARGE);

function signed(email: ReturnType<typeof outgoing>) {
  const { privateKey: key } = generateKeyPairSync('rsa', { modulusLength: 2_048 });
  return { ...email, dkim: { domain: email.from.domain, selector: 'sw1', key } };
}

/** Timeouts that no server of a test reaches. */
const LONG_TIMES = { connectMs: 600_000, transferMs: 600_000, replyMs: 600_000 };

/** The outcome with a scripted server, after a moment in which an unwanted repetition would occur. */
async function sendWithScript(
  t: TestContext,
  script: Script,
  email = outgoing(),
  times: { connectMs?: number; transferMs: number; replyMs: number } = LONG_TIMES,
) {
  const server = await smtpScript(t, script);
  const outcome = await sendOne(server.url.replace('//', '//user:password@'), email, times);
  await sleep(300);
  return { outcome, server };
}

describe('a reply of the server', { concurrency: true }, () => {
  const both = { EHLO: '502 what?' };
  const cases: [string, Script, SendOutcome['kind']][] = [
    ['4xx as greeting', { greeting: '421 too many connections' }, 'busy'],
    ['5xx as greeting', { greeting: '554 go away' }, 'account'],
    ['5xx to HELO', { ...both, HELO: '550 go away' }, 'account'],
    ['4xx to AUTH', { AUTH: '454 temporary failure' }, 'busy'],
    ['5xx to AUTH', { AUTH: '535 wrong password' }, 'account'],
    ['4xx to MAIL FROM', { MAIL: '451 later' }, 'busy'],
    ['5xx to MAIL FROM', { MAIL: '553 not your address' }, 'account'],
    ['4xx to RCPT TO', { RCPT: '450 greylisted' }, 'busy'],
    ['5xx to RCPT TO', { RCPT: '550 no such user' }, 'bounced'],
    ['5xx to DATA', { DATA: '554 no valid recipients' }, 'bounced'],
    ['4xx to the message', { message: '451 4.7.1 later' }, 'busy'],
    ['5xx to the message', { message: '554 5.7.1 spam' }, 'bounced'],
    ['5xx without a reason to the message', { message: '554 no' }, 'rejected'],
  ];
  for (const [name, script, kind] of cases) {
    for (const pipelining of [false, true]) {
      const EHLO = '250-here\r\n250-PIPELINING\r\n250 AUTH PLAIN';
      test(`${name} is ${kind}${pipelining ? ', with pipelining too' : ''}`, async (t) => {
        const { outcome, server } = await sendWithScript(t, { ...(pipelining && { EHLO }), ...script });
        assert.equal(outcome.kind, kind);
        const reply = Object.values(script).at(-1) as string;
        assert.equal((outcome as { detail: string }).detail, `The SMTP server answered: ${reply}`);
        assert.equal(server.messages.length, 'message' in script ? 1 : 0);
      });
    }
  }

  test('that does not support EHLO is followed by HELO', async (t) => {
    const { outcome } = await sendWithScript(t, both);
    assert.equal(outcome.kind, 'sent');
  });

  test('5xx in the middle of the data is a refusal', async (t) => {
    const { outcome, server } = await sendWithScript(t, { chunk: '552 too large' }, LARGE);
    assert.deepEqual([outcome.kind, server.messages.length], ['bounced', 0]);
  });

  test('that refuses some recipients does not stop the email to the others', async (t) => {
    const RCPT = (line: string) => (line.includes('<r1@') ? '550 no such user' : '250 ok');
    const { outcome, server } = await sendWithScript(t, { RCPT }, outgoing({ to: addresses(3) }));
    assert.deepEqual([outcome.kind, server.messages.length], ['sent', 1]);
  });

  test('4xx to some recipients and 5xx to all others is busy', async (t) => {
    const RCPT = (line: string) => (line.includes('<r1@') ? '450 greylisted' : '550 no such user');
    const { outcome } = await sendWithScript(t, { RCPT }, outgoing({ to: addresses(3) }));
    const detail = 'The SMTP server answered: 450 greylisted';
    assert.ok(outcome.kind === 'busy');
    assert.equal(outcome.detail, detail);
    assert.deepEqual(outcome.deferred, [{ recipient: 'r1@example.net', detail, isOverLimit: false }]);
    assert.deepEqual(
      outcome.refused?.map(({ recipient }) => recipient),
      ['r0@example.net', 'r2@example.net'],
    );
  });

  test('a refused sender concerns no recipient, also if each was refused with it', async (t) => {
    const script = {
      EHLO: '250-here\r\n250 PIPELINING',
      MAIL: '451 4.7.1 later',
      RCPT: '503 5.5.1 MAIL first',
      DATA: '503 no',
    };
    const { outcome } = await sendWithScript(t, script, outgoing({ to: addresses(3) }));
    assert.deepEqual(outcome, { kind: 'busy', detail: 'The SMTP server answered: 451 4.7.1 later' });
  });

  for (const message of ['garbage', '354 go on', '150 what'])
    test(`${JSON.stringify(message)} to the message is unknown`, async (t) => {
      const { outcome, server } = await sendWithScript(t, { message });
      assert.deepEqual([outcome.kind, server.messages.length], ['unknown', 1]);
    });
});

describe('a conversation that breaks off', { concurrency: true }, () => {
  const before: [string, Script][] = (['greeting', 'EHLO', 'AUTH', 'MAIL', 'RCPT', 'DATA'] as const).flatMap((step) =>
    ['close', 'reset'].map((act): [string, Script] => [`${act} at ${step}`, { [step]: act }]),
  );
  for (const [name, script] of before) {
    test(`before the data (${name}) has sent nothing`, async (t) => {
      for (const email of [outgoing(), signed(outgoing())]) {
        const { outcome, server } = await sendWithScript(t, script, email);
        assert.deepEqual(outcome, { kind: 'busy', detail: 'The SMTP server could not be reached: connection lost.' });
        assert.equal(server.messages.length, 0);
      }
    });
  }

  for (const act of ['close', 'reset'])
    test(`in the middle of the data (${act}) has sent nothing`, async (t) => {
      for (const email of [LARGE, SIGNED]) {
        const { outcome, server } = await sendWithScript(t, { chunk: act }, email);
        assert.deepEqual([outcome.kind, server.messages.length], ['busy', 0]);
      }
    });

  test('since the message cannot be signed has sent nothing', async (t) => {
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });
    const email = { ...outgoing(), dkim: { domain: 'acme.example', selector: 'sw1', key: publicKey } };
    const { outcome, server } = await sendWithScript(t, {}, email);
    assert.deepEqual([outcome.kind, server.messages.length], ['busy', 0]);
  });

  for (const act of ['close', 'reset'])
    for (const [size, email] of [
      ['small', outgoing()],
      ['large', LARGE],
      ['signed', SIGNED],
    ] as const)
      test(`after the final dot (${act}, ${size}) leaves it unknown and sends nothing again by itself`, async (t) => {
        const { outcome, server } = await sendWithScript(t, { message: act }, email);
        assert.deepEqual(outcome, { kind: 'unknown', detail: 'The SMTP server did not answer: connection lost.' });
        assert.deepEqual([server.messages.length, server.count()], [1, 1]);
      });

  test('after the simulator accepted the email leaves it unknown', async (t) => {
    const { smtpUrl, behave, inbox } = await simulator(t);
    await behave({ reset_after_accept: 1 });
    const outcome = await sendOne(smtpUrl);
    await sleep(300);
    assert.deepEqual([outcome.kind, (await inbox()).length], ['unknown', 1]);
  });
});

describe('a server that is silent', { concurrency: true }, () => {
  const times = { transferMs: 2_000, replyMs: 700 };

  for (const step of ['EHLO', 'AUTH', 'MAIL', 'RCPT', 'DATA'] as const)
    test(`at ${step} has received nothing`, async (t) => {
      const { outcome } = await sendWithScript(t, { [step]: 'silent' }, outgoing(), times);
      assert.deepEqual(outcome, { kind: 'busy', detail: 'The SMTP server could not be reached: no answer in time.' });
    });

  test('after the final dot leaves it unknown, and nothing is sent again', async (t) => {
    const { outcome, server } = await sendWithScript(t, { message: 'silent' }, outgoing(), {
      transferMs: 60_000,
      replyMs: 700,
    });
    assert.deepEqual(outcome, { kind: 'unknown', detail: 'The SMTP server did not answer: no answer in time.' });
    assert.deepEqual([server.messages.length, server.count()], [1, 1]);
  });

  test('after the final dot has more time for its reply than for the transfer', async (t) => {
    const server = await smtpScript(t, { message: 'silent' });
    const sent = sendOne(server.url, outgoing(), { transferMs: 5_000, replyMs: 60_000 });
    await eventually('the message is there', () => server.messages.length === 1);
    await sleep(6_000);
    server.connections.forEach((socket) => socket.write('250 2.0.0 taken\r\n'));
    assert.deepEqual([(await sent).kind, server.messages.length], ['sent', 1]);
  });

  test('that sends byte by byte is given up after the transfer timeout', async (t) => {
    const port = await tcpServer(t, (socket) => {
      // One byte at a time: never silent, never done.
      const timer = setInterval(() => socket.write('2'), 50);
      socket.once('close', () => clearInterval(timer));
    });
    const outcome = await sendOne(`smtp://127.0.0.1:${port}`, outgoing(), { transferMs: 700, replyMs: 60_000 });
    assert.deepEqual(outcome, { kind: 'busy', detail: 'The SMTP server could not be reached: no answer in time.' });
  });

  test('except for bytes after the final dot leaves it unknown when the time for the reply is over', async (t) => {
    const trickle = () => 'silent';
    const server = await smtpScript(t, { message: trickle });
    const timer = setInterval(
      () => server.connections.forEach((socket) => server.messages.length && socket.write('2')),
      50,
    );
    t.after(() => clearInterval(timer));
    const outcome = await sendOne(server.url, outgoing(), { transferMs: 60_000, replyMs: 700 });
    assert.deepEqual([outcome.kind, server.messages.length], ['unknown', 1]);
  });

  test('keeps emails that wait for a connection no longer than the time for the transfer', async (t) => {
    const server = await smtpScript(t, { MAIL: 'silent' });
    const emails = Array.from({ length: 25 }, () => outgoing());
    const outcomes = await smtp(server.url, { transferMs: 500, replyMs: 60_000 }).send(emails, CALL);
    assert.deepEqual(new Set(outcomes.map(({ kind }) => kind)), new Set(['busy']));
  });
});

describe('a server that cannot be reached', { concurrency: true }, () => {
  test('because it does not speak TLS', async (t) => {
    const server = await smtpScript(t, {});
    assert.equal((await sendOne(server.url.replace('smtp:', 'smtps:'))).kind, 'busy');
  });

  for (const STARTTLS of ['close', 'reset', '220 go on, in plain text'])
    test(`because it breaks off STARTTLS (${STARTTLS})`, async (t) => {
      const EHLO = '250-here\r\n250 STARTTLS';
      const { outcome, server } = await sendWithScript(t, { EHLO, STARTTLS }, outgoing(), {
        transferMs: 2_000,
        replyMs: 60_000,
      });
      assert.deepEqual([outcome.kind, server.messages.length], ['busy', 0]);
    });
});

describe('encryption of the connection', { concurrency: true }, () => {
  for (const [url, isRequired] of [
    ['smtp://smtp.example.com', true],
    ['smtp://localhost.example.com:25', true],
    ['smtp://[2001:db8::1]:25', true],
    ['smtp://smtp.example.com?requireTLS=true', true],
    ['smtp://localhost?requireTLS=true', true],
    ['smtp://smtp.example.com?requireTLS=false', false],
    ['smtp://localhost:2525', false],
    ['smtp://127.0.0.1:2525', false],
    ['smtp://[::1]:2525', false],
  ] as const)
    test(`${isRequired ? 'is required' : 'is not required'} by ${url}`, () =>
      assert.equal(requiresTls(url), isRequired));

  // 0.0.0.0 leads to this machine and is no loopback address.
  const elsewhere = (port: number, query = '') => `smtp://user:password@0.0.0.0:${port}${query}`;

  test('sends neither password nor email to a server that offers no STARTTLS', async (t) => {
    const server = await smtpScript(t, {});
    const outcome = await sendOne(elsewhere(server.port));
    assert.ok(['busy', 'account'].includes(outcome.kind), outcome.kind);
    assert.deepEqual(
      server.commands.filter((line) => /^(?:AUTH|MAIL|RCPT|DATA)/.test(line)),
      [],
    );
    assert.deepEqual(server.messages, []);
  });

  test('is left out where the operator allows it', async (t) => {
    const server = await smtpScript(t, {});
    assert.equal((await sendOne(elsewhere(server.port, '?requireTLS=false'))).kind, 'sent');
    assert.equal(server.messages.length, 1);
  });
});

describe('connections', { concurrency: true }, () => {
  test('are used again', async (t) => {
    const server = await smtpScript(t, {});
    const provider = smtp(server.url);
    for (let i = 0; i < 5; i++) assert.equal((await provider.send([outgoing()], CALL))[0]?.kind, 'sent');
    assert.deepEqual([server.messages.length, server.count()], [5, 1]);
  });

  test('are 40 and 40 for late replies, or as many as the URL allows, of which a quarter is for late replies', () => {
    const connectionsOf = (query: string) => smtp(`smtp://127.0.0.1:2525${query}`).connections;
    assert.deepEqual(connectionsOf(''), { usual: 40, late: 40 });
    assert.deepEqual(connectionsOf('/?maxConnections=1'), { usual: 1, late: 0 });
    assert.deepEqual(connectionsOf('/?maxConnections=8'), { usual: 6, late: 2 });
    assert.deepEqual(connectionsOf('/?maxConnections=none'), { usual: 40, late: 40 });
  });

  for (const [query, count] of [
    ['', 80],
    ['/?maxConnections=3', 3],
  ] as const)
    test(`are at most ${count} (${query}), whatever the number of emails in a call, and each email is sent once`, async (t) => {
      const server = await smtpScript(t, {});
      const emails = Array.from({ length: 200 }, () => outgoing());
      const outcomes = await smtp(`${server.url}${query}`).send(emails, CALL);
      assert.deepEqual(
        outcomes,
        emails.map(({ messageId }) => ({ kind: 'sent', messageId })),
      );
      assert.equal(server.count(), count);
      const ids = server.messages.map((message) => /^Message-ID: (.*)$/im.exec(message)?.[1]);
      assert.deepEqual(new Set(ids), new Set(emails.map(({ messageId }) => messageId)));
      assert.equal(ids.length, 200);
    });

  for (const how of ['end', 'resetAndDestroy'] as const)
    test(`that the server closed while they were idle (${how}) are replaced`, async (t) => {
      const server = await smtpScript(t, {});
      const provider = smtp(server.url);
      await provider.send([outgoing()], CALL);
      for (const socket of server.connections) socket[how]();
      await sleep(100);
      assert.equal((await provider.send([outgoing()], CALL))[0]?.kind, 'sent');
      assert.deepEqual([server.messages.length, server.count()], [2, 2]);
    });

  test('that the server closes when the next email comes have not sent it', async (t) => {
    let mails = 0;
    const server = await smtpScript(t, { MAIL: () => (++mails === 2 ? 'reset' : '250 ok') });
    const provider = smtp(server.url);
    const kinds = [];
    for (let i = 0; i < 3; i++) kinds.push((await provider.send([outgoing()], CALL))[0]?.kind);
    await sleep(300);
    assert.deepEqual([kinds, server.messages.length], [['sent', 'busy', 'sent'], 2]);
  });

  test('broken by one email of a call do not fail the others', async (t) => {
    const { smtpUrl, behave, inbox } = await simulator(t);
    await behave({ reset_before_accept: 1 });
    const outcomes = await smtp(smtpUrl).send([outgoing(), outgoing(), outgoing()], CALL);
    await sleep(300);
    assert.deepEqual(outcomes.map(({ kind }) => kind).sort(), ['sent', 'sent', 'unknown']);
    assert.equal((await inbox()).length, 2);
  });
});

test('accepts every email and has no find', () => {
  const provider = smtp('smtp://127.0.0.1:1');
  const email = outgoing({
    to: addresses(50),
    cc: addresses(50, 'c'),
    bcc: addresses(50, 'b'),
    from: 'who?@acme.example',
  });
  assert.equal(provider.refusal(email), undefined);
  assert.ok(!('find' in provider));
});
