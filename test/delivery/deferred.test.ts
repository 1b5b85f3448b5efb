import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { emailChannel } from '../../src/delivery/email/channel.ts';
import type { EmailDeps } from '../../src/delivery/email/contract.ts';
import { giveUp } from '../../src/delivery/endings.ts';
import { newId } from '../../src/lib/ids.ts';
import { smtp } from '../../src/providers/smtp/smtp.ts';
import { eraseContents } from '../../src/store/emails/content-erasure.ts';
import { findEmailDetails } from '../../src/store/emails/message-details.ts';
import { addSuppressions } from '../../src/store/suppressions/suppressions.ts';
import { organizationFixture } from '../support/organization.ts';
import { type Answers, answeringServer } from './answering-server.ts';
import { harness } from './harness.ts';

const { pool, orgId } = await organizationFixture(20);

let count = 0;

/** A delivery by SMTP to a server with these answers, with a domain of its own for recipients. */
async function start(t: TestContext, answers: Answers, settings: Partial<EmailDeps> = {}, hidesPipelining = false) {
  const server = await answeringServer(t, answers, hidesPipelining);
  const used = harness(pool, orgId, [], { providers: [smtp(server.url)], ...settings });
  const domain = `d${++count}.example.net`;
  const details = async (id: string) => {
    const found = await findEmailDetails(pool, orgId, id);
    assert.ok(found);
    return found;
  };
  return {
    ...used,
    ...server,
    at: (local: string) => `${local}@${domain}`,
    recipientsOf: async (id: string) =>
      Object.fromEntries((await details(id)).recipients.map(({ recipient, status }) => [localPart(recipient), status])),
    errorsOf: async (id: string) =>
      Object.fromEntries((await details(id)).recipients.map(({ recipient, error }) => [localPart(recipient), error])),
    /** Delivers until the email has ended, at most `rounds` times. @returns the states of the results */
    deliverAll: async (id: string, rounds = 10): Promise<string[]> => {
      const states: string[] = [];
      for (let round = 0; round < rounds && states.at(-1) !== 'ended'; round++)
        states.push((await used.deliverOne({ id, version: 0 })).state);
      return states;
    },
    giveUp: (id: string, attempts: number) => giveUp(used.deps, emailChannel(used.deps), [id], attempts, id),
    envelopes: () => server.transactions.map(({ recipients }) => recipients.map((each) => each.split('@')[0])),
  };
}

const localPart = (address: string) => address.split('@')[0] as string;

/** Defers these recipients in the first `times` transactions. */
const deferring =
  (reply: string, deferred: readonly string[], times = 1) =>
  (recipient: string, transaction: number) =>
    deferred.includes(localPart(recipient)) && transaction < times ? reply : '250 ok';

async function suppressed(...addresses: string[]): Promise<string[]> {
  const { rows } = await pool.query<{ email: string }>(`SELECT email FROM suppressions WHERE email = ANY ($1)`, [
    addresses,
  ]);
  return rows.map(({ email }) => email);
}

/** The header of a message. */
function header(message: string, name: string): string | undefined {
  const [head = ''] = message.split('\r\n\r\n');
  return new RegExp(`^${name}: (.*(?:\r\n[ \t].*)*)`, 'im').exec(head)?.[1]?.replace(/\s+/g, ' ');
}

describe('a recipient that a server defers while it accepts others', () => {
  for (const reply of [
    '450 4.2.0 Greylisted',
    '451 4.3.0 local error',
    '452 4.2.2 over quota',
    '452 4.5.3 Recipients belong to multiple regions ATTR38',
    '552 5.5.3 Too many recipients',
    '552 too many recipients',
  ])
    for (const field of ['to', 'cc', 'bcc'] as const)
      test(`gets the same message by a later transaction: ${field}, ${reply}`, async (t) => {
        const { at, accept, deliverAll, ...used } = await start(t, { rcpt: deferring(reply, ['late']) });
        const to = [at('ok'), ...(field === 'to' ? [at('late')] : [])];
        const other = field === 'to' ? {} : { [field]: [at('late')] };
        const { id } = await accept({ to, cc: [at('copy')], ...other });
        assert.equal((await deliverAll(id)).at(-1), 'ended');
        const [first, second] = used.transactions;
        assert.deepEqual(used.envelopes()[1], ['late']);
        assert.equal(used.transactions.length, 2);
        for (const name of ['To', 'Cc', 'Message-ID', 'Subject', 'From'])
          assert.equal(header(second?.message ?? '', name), header(first?.message ?? '', name), name);
        assert.equal(first?.message.split('\r\n\r\n')[0]?.includes('late@'), field !== 'bcc');
        assert.equal((await used.email(id)).status, 'sent');
        assert.equal((await used.recipientsOf(id))['late'], 'sent');
        assert.deepEqual(
          (await used.timeline(id)).filter((type) => type === 'sent'),
          ['sent'],
        );
        assert.deepEqual(await used.outcomes(id), ['sent', 'sent']);
        assert.deepEqual(await suppressed(at('late')), []);
      });

  test('is queued, with the answer, while the email is sent; the timeline and the attempt show it', async (t) => {
    const { at, accept, deliverOne, ...used } = await start(t, { rcpt: deferring('450 4.2.0 Greylisted', ['late']) });
    const { id } = await accept({ to: [at('ok'), at('late')] });
    const answer = 'The SMTP server answered: 450 4.2.0 Greylisted';
    const result = await deliverOne({ id, version: 0 });
    assert.deepEqual(result, { id, state: 'again', reason: answer, alone: true, failures: 0 });
    assert.equal((await used.email(id)).status, 'sent');
    assert.deepEqual(await used.recipientsOf(id), { ok: 'sent', late: 'queued' });
    assert.deepEqual(await used.errorsOf(id), { ok: null, late: answer });
    assert.deepEqual(await used.timeline(id), ['queued', 'sent', 'delivery_delayed']);
    const [attempt] = await used.attempts(id);
    assert.deepEqual([attempt?.outcome, attempt?.detail], ['sent', `Deferred for 1 of 2 recipients. ${answer}`]);
    assert.deepEqual(await eraseContents(pool, orgId, [id]), [{ id, is_open: true }]);
  });

  test('is tried again under the retry policy, and is bounced once it is refused permanently', async (t) => {
    const replies = ['450 4.2.0 later', '450 4.2.0 later', '550 5.1.1 no such user'];
    const rcpt = (recipient: string, transaction: number) =>
      localPart(recipient) === 'late' ? (replies[transaction] as string) : '250 ok';
    const { at, accept, deliverOne, ...used } = await start(t, { rcpt });
    const { id } = await accept({ to: [at('ok'), at('late')] });
    const results = [];
    for (let round = 0; round < 3; round++) results.push(await deliverOne({ id, version: 0 }));
    assert.deepEqual(
      results.map((result) => [result.state, 'failures' in result && result.failures]),
      [
        ['again', 0],
        ['again', 1],
        ['ended', false],
      ],
    );
    assert.deepEqual(await used.recipientsOf(id), { ok: 'sent', late: 'bounced' });
    assert.deepEqual(await used.timeline(id), ['queued', 'sent', 'delivery_delayed', 'bounced']);
    assert.deepEqual(await used.outcomes(id), ['sent', 'again', 'refused']);
    assert.deepEqual(await suppressed(at('ok'), at('late')), [at('late')]);
  });

  test('has failed with its own answer when its attempts are used up, and is not suppressed', async (t) => {
    const rcpt = (recipient: string) =>
      ({ a: '250 ok', b: '450 4.2.0 b later', c: '451 4.2.0 c later' })[localPart(recipient)] ?? '';
    const { at, accept, deliverOne, ...used } = await start(t, { rcpt });
    const { id } = await accept({ to: [at('a'), at('b'), at('c')] });
    for (let round = 0; round < 3; round++) assert.equal((await deliverOne({ id, version: 0 })).state, 'again');
    assert.deepEqual(await used.giveUp(id, 3), new Map([[id, 'queued']]));
    assert.deepEqual(await used.giveUp(id, 2), new Map([[id, 'sent']]));
    assert.deepEqual(await used.recipientsOf(id), { a: 'sent', b: 'failed', c: 'failed' });
    assert.deepEqual(await used.errorsOf(id), {
      a: null,
      b: 'The SMTP server answered: 450 4.2.0 b later Given up after 2 attempts.',
      c: 'The SMTP server answered: 451 4.2.0 c later Given up after 2 attempts.',
    });
    assert.deepEqual(await used.timeline(id), [
      'queued',
      'sent',
      'delivery_delayed',
      'delivery_delayed',
      'failed',
      'failed',
    ]);
    assert.equal((await used.email(id)).status, 'sent');
    assert.deepEqual(await suppressed(at('b'), at('c')), []);
    assert.deepEqual(await used.deliverAll(id), ['ended']);
    assert.equal(used.transactions.length, 1);
  });

  test('gets nothing if it is suppressed meanwhile; the others keep their message', async (t) => {
    const { at, accept, deliverOne, ...used } = await start(t, { rcpt: deferring('450 4.2.0 later', ['b', 'c']) });
    const { id } = await accept({ to: [at('a'), at('b')], cc: [at('c')] });
    await deliverOne({ id, version: 0 });
    await addSuppressions(pool, [{ id: newId('sup'), org_id: orgId, email: at('b'), origin: 'manual' }]);
    assert.deepEqual(await used.deliverAll(id), ['ended']);
    assert.deepEqual(used.envelopes(), [['a'], ['c']]);
    assert.equal(header(used.transactions[1]?.message ?? '', 'To'), `${at('a')}, ${at('b')}`);
    assert.deepEqual(await used.recipientsOf(id), { a: 'sent', b: 'suppressed', c: 'sent' });
  });

  test('is not in the headers if it was suppressed from the beginning', async (t) => {
    const { at, accept, deliverAll, ...used } = await start(t, { rcpt: deferring('450 4.2.0 later', ['b']) });
    await addSuppressions(pool, [{ id: newId('sup'), org_id: orgId, email: at('c'), origin: 'manual' }]);
    const { id } = await accept({ to: [at('a'), at('b'), at('c')] });
    await deliverAll(id);
    assert.deepEqual(
      used.transactions.map(({ message }) => header(message, 'To')),
      Array(2).fill(`${at('a')}, ${at('b')}`),
    );
  });

  test('gets it although all others were refused permanently', async (t) => {
    const rcpt = (recipient: string, transaction: number) =>
      localPart(recipient) === 'gone' ? '550 5.1.1 no such user' : transaction === 0 ? '450 4.2.0 later' : '250 ok';
    const { at, accept, deliverAll, ...used } = await start(t, { rcpt });
    const { id } = await accept({ to: [at('gone'), at('late')] });
    assert.deepEqual(await deliverAll(id), ['again', 'ended']);
    assert.deepEqual(used.envelopes(), [['late']]);
    assert.deepEqual(await used.recipientsOf(id), { gone: 'bounced', late: 'sent' });
    assert.deepEqual(await used.outcomes(id), ['refused', 'sent']);
    const types = await used.timeline(id);
    assert.deepEqual([...types].sort(), ['bounced', 'delivery_delayed', 'queued', 'sent']);
  });

  test('gets it although the message was refused for the others', async (t) => {
    const data = (_: readonly string[], transaction: number) => (transaction === 0 ? '554 5.6.0 malformed' : '250 ok');
    const { at, accept, deliverAll, ...used } = await start(t, { rcpt: deferring('450 4.2.0 later', ['c']), data });
    const { id } = await accept({ to: [at('a'), at('b'), at('c')] });
    assert.deepEqual(await deliverAll(id), ['again', 'ended']);
    assert.deepEqual(await used.recipientsOf(id), { a: 'bounced', b: 'bounced', c: 'sent' });
    assert.deepEqual(await suppressed(at('a'), at('b')), []);
  });
});

describe('a server that takes 100 recipients of a transaction', () => {
  for (const reply of [
    '452 4.5.3 Too many recipients',
    '552 5.5.3 Too many recipients',
    '452 Recipient limit exceeded',
  ])
    test(`gets an email to 120 in two transactions of one delivery: ${reply}`, async (t) => {
      const rcpt = (_: string, __: number, accepted: readonly string[]) => (accepted.length < 100 ? '250 ok' : reply);
      const { at, accept, deliverAll, ...used } = await start(t, { rcpt });
      const list = (name: string) => Array.from({ length: 40 }, (_, i) => at(`${name}${i}`));
      const { id } = await accept({ to: list('t'), cc: list('c'), bcc: list('b') });
      assert.deepEqual(await deliverAll(id), ['ended']);
      assert.deepEqual(
        used.envelopes().map(({ length }) => length),
        [100, 20],
      );
      assert.equal(new Set(used.envelopes().flat()).size, 120);
      assert.deepEqual(await used.timeline(id), ['queued', 'sent']);
      assert.deepEqual(await used.outcomes(id), ['sent', 'sent']);
      assert.deepEqual(await eraseContents(pool, orgId, [id]), [{ id, is_open: false }]);
    });

  test('and one recipient only is given it in as many transactions as there are recipients', async (t) => {
    const rcpt = (_: string, __: number, accepted: readonly string[]) =>
      accepted.length === 0 ? '250 ok' : '452 4.5.3 Recipients belong to multiple regions';
    const { at, accept, deliverAll, ...used } = await start(t, { rcpt });
    const { id } = await accept({ to: ['a', 'b', 'c', 'd', 'e'].map(at) });
    assert.deepEqual(await deliverAll(id), ['ended']);
    assert.deepEqual(used.envelopes(), [['a'], ['b'], ['c'], ['d'], ['e']]);
  });
});

describe('a server that refuses the message of a transaction with more than 50 recipients', () => {
  const list = (count: number, at: (local: string) => string) => Array.from({ length: count }, (_, i) => at(`r${i}`));
  const refusing =
    (reply: string, most = 50) =>
    (recipients: readonly string[]) =>
      recipients.length > most ? reply : '250 ok';
  /** The sizes of the transactions whose message was accepted. */
  const acceptedSizes = (transactions: Awaited<ReturnType<typeof start>>['transactions']) =>
    transactions.flatMap(({ recipients, reply }) => (reply.startsWith('2') ? recipients.length : []));

  for (const [reply, sizes] of [
    ['554 Transaction failed: Recipient count exceeds 50', [50, 50, 20]],
    ['554 5.7.0 Message has 120 recipients; at most 50 are allowed.', [50, 50, 20]],
    ['452 4.5.3 Too many recipients', [30, 30, 30, 30]],
    ['552 5.5.3 Error', [30, 30, 30, 30]],
    ['550 5.7.1 You have exceeded the maximum number of recipients per message', [30, 30, 30, 30]],
  ] as const)
    test(`gives an email to 120 in one delivery, once to each: ${reply}`, async (t) => {
      const { at, accept, deliverAll, ...used } = await start(t, { rcpt: () => '250 ok', data: refusing(reply) });
      const all = list(120, at);
      const { id } = await accept({ to: all.slice(0, 40), cc: all.slice(40, 80), bcc: all.slice(80) });
      assert.deepEqual(await deliverAll(id), ['ended']);
      assert.deepEqual(acceptedSizes(used.transactions), sizes);
      const accepted = used.transactions.filter((each) => each.reply.startsWith('2'));
      assert.deepEqual(accepted.flatMap(({ recipients }) => recipients).sort(), all.toSorted());
      assert.deepEqual(await used.timeline(id), ['queued', 'sent']);
      assert.deepEqual(new Set(Object.values(await used.recipientsOf(id))), new Set(['sent']));
      assert.deepEqual(await suppressed(...all), []);
      // The limit is known from then on.
      const [before, next] = [used.transactions.length, await accept({ to: all })];
      assert.deepEqual(await deliverAll(next.id), ['ended']);
      assert.deepEqual(acceptedSizes(used.transactions.slice(before)), sizes);
      assert.equal(used.transactions.length, before + sizes.length);
    });

  test('and closes the connection at recipient 51 instead gets it 50 at a time', async (t) => {
    const rcpt = (_: string, __: number, accepted: readonly string[]) =>
      accepted.length < 50 ? '250 ok' : '421 4.5.3 Too many recipients, closing';
    const { at, accept, deliverAll, ...used } = await start(t, { rcpt }, {}, true);
    const { id } = await accept({ to: list(120, at) });
    assert.deepEqual(await deliverAll(id), ['ended']);
    assert.deepEqual(acceptedSizes(used.transactions), [50, 50, 20]);
  });

  test('also of one recipient is believed about that recipient, and nobody is suppressed', async (t) => {
    const reply = '554 5.5.3 Too many recipients';
    const { at, accept, deliverAll, ...used } = await start(t, { rcpt: () => '250 ok', data: refusing(reply, 0) });
    const all = list(3, at);
    const { id } = await accept({ to: all });
    assert.deepEqual(await deliverAll(id), ['ended']);
    assert.deepEqual(await used.recipientsOf(id), { r0: 'bounced', r1: 'bounced', r2: 'bounced' });
    assert.deepEqual(await suppressed(...all), []);
  });

  test('while a worker dies between the transactions gets it once for each recipient', async (t) => {
    const { at, accept, deps, ...used } = await start(t, {
      rcpt: () => '250 ok',
      data: refusing('554 Transaction failed: Recipient count exceeds 50'),
    });
    const all = list(120, at);
    const { id } = await accept({ to: all });
    // Each worker dies after it has recorded an answer; a new process does not know the limit.
    for (let dead = 0; dead < 3; dead++) {
      const recorder = {
        ...deps.recorder,
        record: async (...endings: Parameters<typeof deps.recorder.record>) => {
          await deps.recorder.record(...endings);
          throw new Error('killed');
        },
      };
      const dying = harness(pool, orgId, [], { providers: dead === 0 ? [smtp(used.url)] : deps.providers, recorder });
      await assert.rejects(dying.deliverOne({ id, version: 0 }), /killed/);
    }
    assert.equal((await used.deliverAll(id)).at(-1), 'ended');
    const accepted = used.transactions.filter((each) => each.reply.startsWith('2'));
    assert.deepEqual(accepted.flatMap(({ recipients }) => recipients).sort(), all.toSorted());
    assert.deepEqual(await suppressed(...all), []);
  });
});

describe('a worker that dies in a later transaction', () => {
  for (const ambiguousSend of ['retry', 'fail'] as const)
    test(`leaves only the recipients of that transaction ambiguous (${ambiguousSend})`, async (t) => {
      const { at, accept, deliverOne, ...used } = await start(
        t,
        {
          rcpt: deferring('450 4.2.0 later', ['b', 'c']),
          data: (_, transaction) => (transaction === 1 ? 'drop' : '250 ok'),
        },
        { ambiguousSend },
      );
      const { id } = await accept({ to: [at('a'), at('b')], cc: [at('c')] });
      assert.equal((await deliverOne({ id, version: 0 })).state, 'again');
      assert.equal((await deliverOne({ id, version: 0 })).state, 'again');
      // As if the worker had died before it recorded that there was no answer.
      await pool.query(`UPDATE attempts SET outcome = NULL, ended_at = NULL WHERE message_id = $1 AND n = 2`, [id]);
      assert.equal((await deliverOne({ id, version: 0 })).state, 'again', 'the call may still be under way');
      await used.age(id, 900);
      assert.deepEqual(await used.deliverAll(id), ['ended']);
      const isRepeated = ambiguousSend === 'retry';
      assert.deepEqual(used.envelopes(), [['a'], ['b', 'c'], ...(isRepeated ? [['b', 'c']] : [])]);
      const end = isRepeated ? 'sent' : 'failed';
      assert.deepEqual(await used.recipientsOf(id), { a: 'sent', b: end, c: end });
    });

  test('or a server that does not answer leaves recipients certain that it deferred in that transaction', async (t) => {
    const { at, accept, deliverAll, ...used } = await start(
      t,
      { rcpt: deferring('450 4.2.0 later', ['c']), data: (_, transaction) => (transaction === 0 ? 'drop' : '250 ok') },
      { ambiguousSend: 'fail' },
    );
    const { id } = await accept({ to: [at('a'), at('b'), at('c')] });
    assert.equal((await deliverAll(id)).at(-1), 'ended');
    assert.deepEqual(used.envelopes(), [['a', 'b'], ['c']]);
    assert.deepEqual(await used.recipientsOf(id), { a: 'failed', b: 'failed', c: 'sent' });
  });

  test('after its answer was recorded does not repeat it: the next delivery applies it', async (t) => {
    const { at, accept, deps, ...used } = await start(t, { rcpt: deferring('450 4.2.0 later', ['b']) });
    const { id } = await accept({ to: [at('a'), at('b')] });
    const { record } = deps.recorder;
    const dying = {
      ...deps.recorder,
      record: async (...endings: Parameters<typeof record>) => {
        await record(...endings);
        throw new Error('killed');
      },
    };
    const dead = harness(pool, orgId, [], { providers: deps.providers, recorder: dying });
    await assert.rejects(dead.deliverOne({ id, version: 0 }), /killed/);
    assert.equal((await used.email(id)).status, 'queued');
    assert.deepEqual(await used.deliverAll(id), ['ended']);
    assert.deepEqual(used.envelopes(), [['a'], ['b']]);
    assert.deepEqual(await used.recipientsOf(id), { a: 'sent', b: 'sent' });
  });
});

test('a group is not held by a member with a deferred recipient', async (t) => {
  const { at, accept, deliver, ...used } = await start(t, { rcpt: deferring('450 4.2.0 later', ['late']) });
  const first = await accept({ to: [at('ok'), at('late')] });
  const second = await accept({ to: [at('other')] });
  const results = await deliver(first, second);
  assert.deepEqual(new Set(results.map(({ state }) => state)), new Set(['again', 'ended']));
  assert.ok(results.some((result) => result.state === 'again' && result.alone));
  assert.deepEqual(await used.deliverAll(first.id), ['ended']);
});
