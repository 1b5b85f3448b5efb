import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { emailChannel } from '../../src/delivery/email/channel.ts';
import type { EmailDeps } from '../../src/delivery/email/contract.ts';
import { giveUp } from '../../src/delivery/endings.ts';
import { mapConcurrently } from '../../src/lib/map-concurrently.ts';
import type { EmailProvider } from '../../src/providers/email-provider.ts';
import { smtp } from '../../src/providers/smtp/smtp.ts';
import { findEmailDetails } from '../../src/store/emails/message-details.ts';
import { organizationFixture } from '../support/organization.ts';
import { type Answers, answeringServer, type Transaction } from './answering-server.ts';
import { harness } from './harness.ts';

const { pool, orgId } = await organizationFixture(20);

const SCRIPTS = 200;
const SEED = 53;
/** Scripts that run together. */
const CONCURRENCY = 16;

const DEFERRALS = ['450 4.2.0 greylisted', '451 4.3.0 local error', '452 4.2.2 over quota'];
const NO_MAILBOX = '550 5.1.1 no such user';
const SPAM = '554 5.7.1 message refused as spam';

/** How a worker dies in a call: before a byte is sent, before the answer is recorded, or before it is applied. */
type Kill = 'before' | 'unrecorded' | 'unapplied' | null;

const script = fc.record({
  recipients: fc.oneof(
    { arbitrary: fc.integer({ min: 1, max: 8 }), weight: 3 },
    { arbitrary: fc.integer({ min: 1, max: 150 }), weight: 1 },
  ),
  /** Of each recipient in turn: its answers in the transactions in which it is asked; the last one stays. */
  rcpt: fc.array(
    fc
      .tuple(
        fc.array(fc.constantFrom(...DEFERRALS), { maxLength: 2 }),
        fc.constantFrom('250 ok', '250 ok', '250 ok', NO_MAILBOX, SPAM, DEFERRALS[0] as string),
      )
      .map(([first, last]) => [...first, last]),
    { minLength: 1, maxLength: 12 },
  ),
  limit: fc.option(fc.integer({ min: 1, max: 100 }).map((most) => ({ most }))),
  limitReply: fc.constantFrom('452 4.5.3 too many recipients', '552 5.5.3 Too many recipients'),
  /** The most recipients of a transaction whose message is accepted. */
  messageLimit: fc.option(fc.integer({ min: 1, max: 100 })),
  messageLimitReply: fc.constantFrom('554 Recipient count exceeds the limit', '452 4.5.3 too many recipients'),
  /** The answers to the message of each transaction; later ones are accepted. */
  data: fc.array(fc.constantFrom('250 ok', '250 ok', '250 ok', '451 4.3.0 later', 'drop', 'drop before', SPAM), {
    maxLength: 4,
  }),
  kills: fc.array(fc.constantFrom<Kill>(null, null, null, 'before', 'unrecorded', 'unapplied'), { maxLength: 5 }),
  ambiguousSend: fc.constantFrom<EmailDeps['ambiguousSend']>('retry', 'retry', 'fail'),
  maximumAttempts: fc.integer({ min: 1, max: 4 }),
  rounds: fc.integer({ min: 1, max: 12 }),
  pipelining: fc.boolean(),
});
type Script = (typeof script)['generate'] extends (...args: never[]) => { value: infer Value } ? Value : never;

/** What happened to the emails of the scripts, by the domain of their recipients. */
interface Run {
  readonly script: Script;
  readonly asked: Map<string, string[]>;
  transactions: number;
}
const runs = new Map<string, Run>();
const runOf = (recipient: string) => runs.get(recipient.split('@')[1] as string) as Run;

const answers: Answers = {
  rcpt(recipient, _, accepted) {
    const run = runOf(recipient);
    const { script, asked } = run;
    const earlier = asked.get(recipient) ?? [];
    if (!asked.has(recipient)) asked.set(recipient, earlier);
    const position = Number(/\d+/.exec(recipient)?.[0]);
    const own = script.rcpt[position % script.rcpt.length] as string[];
    // A large email takes few transactions, which keeps the test short.
    const most = Math.max(script.limit?.most ?? Infinity, script.recipients / 6);
    const isOver = accepted.length >= most;
    const answered = earlier.filter((reply) => reply !== script.limitReply).length;
    const reply = isOver ? script.limitReply : (own[Math.min(answered, own.length - 1)] as string);
    earlier.push(reply);
    return reply;
  },
  data(recipients) {
    const run = runOf(recipients[0] as string);
    const { script } = run;
    const most = Math.max(script.messageLimit ?? Infinity, script.recipients / 6);
    if (recipients.length > most) return script.messageLimitReply;
    return run.script.data[run.transactions++] ?? '250 ok';
  },
};

class Killed extends Error {}

/** Delivers the email of a script until it has ended, or until the rounds of the script are over. */
async function deliver(script: Script, domain: string, server: EmailProvider) {
  const kills = [...script.kills];
  /** Recipients of calls whose acceptance was recorded, and of those that may have been accepted. */
  const accepted: string[] = [];
  const ambiguous: string[] = [];
  /** Recipients of calls that did not begin, which nobody knows. */
  const unknown: string[] = [];
  let kill = null as Kill;
  const provider: EmailProvider = {
    ...server,
    async send([email], call, _, handOver) {
      assert.ok(email);
      kill = kills.shift() ?? null;
      const all = (email.envelope ?? [...email.to, ...email.cc, ...email.bcc]).map(({ address }) => address);
      if (kill === 'before') {
        unknown.push(...all);
        throw new Killed();
      }
      const [outcome] = await server.send([email], call, undefined, handOver);
      assert.ok(outcome && outcome.kind !== 'account' && outcome.kind !== 'postponed');
      const { refused = [], deferred = [] } = outcome;
      const named = new Set([...refused, ...deferred].map(({ recipient }) => recipient));
      const others = all.filter((address) => !named.has(address));
      if (outcome.kind === 'unknown' || kill === 'unrecorded') ambiguous.push(...others);
      else if (outcome.kind === 'sent') accepted.push(...others);
      if (kill === 'unrecorded') {
        unknown.push(...all);
        throw new Killed();
      }
      return [outcome];
    },
  };
  const used = harness(pool, orgId, [], { providers: [provider], ambiguousSend: script.ambiguousSend });
  const { recorder } = used.deps;
  const recording = async (...endings: Parameters<typeof recorder.record>) => {
    await recorder.record(...endings);
    if (kill === 'unapplied') throw new Killed();
  };
  const dying = harness(pool, orgId, [], { ...used.deps, recorder: { ...recorder, record: recording } });
  const addresses = Array.from({ length: script.recipients }, (_, i) => `r${i}@${domain}`);
  const third = Math.ceil(addresses.length / 3);
  const { id } = await used.accept({
    to: addresses.slice(0, third),
    cc: addresses.length > third ? addresses.slice(third, 2 * third) : null,
    bcc: addresses.length > 2 * third ? addresses.slice(2 * third) : null,
  });
  let isEnded = false;
  let isUnapplied = false;
  for (let round = 0; round < script.rounds && !isEnded; round++) {
    isUnapplied = false;
    try {
      const result = await dying.deliverOne({ id, version: 0 });
      isEnded = result.state === 'ended';
      if (result.state === 'again' && (result.failures ?? 0) >= script.maximumAttempts) {
        const statuses = await giveUp(used.deps, emailChannel(used.deps), [id], script.maximumAttempts, id);
        isEnded = statuses.get(id) !== 'queued';
      }
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
      isUnapplied = kill === 'unapplied';
    }
    await used.age(id, 900);
  }
  return { id, addresses, accepted, ambiguous, unknown: new Set([...ambiguous, ...unknown]), isEnded, isUnapplied };
}

type Delivered = Awaited<ReturnType<typeof deliver>>;

function countOf(list: readonly string[], recipient: string): number {
  return list.filter((each) => each === recipient).length;
}

/** Checks each recipient of an email against what the server answered. */
async function check(
  run: Run,
  { id, addresses, accepted, ambiguous, unknown, isEnded, isUnapplied }: Delivered,
  taken: readonly Transaction[],
) {
  const details = await findEmailDetails(pool, orgId, id);
  const { rows } = await pool.query<{ status: string }>('SELECT status FROM emails WHERE id = $1', [id]);
  const status = rows[0]?.status as string;
  assert.ok(details);
  const own = new Map(details.recipients.map((each) => [each.recipient, each]));
  if (own.size > 0 && details.recipients.some((each) => each.status !== 'bounced'))
    assert.equal(own.size, addresses.length, 'each recipient has a row of its own');
  const refusedMessages = new Set(taken.filter(({ reply }) => reply === SPAM).flatMap(({ recipients }) => recipients));
  const received = taken
    .filter(({ reply }) => reply.startsWith('250') || reply === 'drop')
    .flatMap((each) => each.recipients);
  for (const recipient of addresses) {
    // The bounce of an email to several is that of a recipient with a row.
    const ofOthers = status === 'bounced' && addresses.length > 1 ? 'sent' : status;
    const is = own.get(recipient)?.status ?? ofOthers;
    const replies = run.asked.get(recipient) ?? [];
    const times = countOf(received, recipient);
    const where = `${recipient} ${is} after ${JSON.stringify(replies)}, received ${times} times`;
    assert.ok(times <= 1 || times - 1 <= countOf(ambiguous, recipient), `twice without an ambiguous call: ${where}`);
    assert.ok(times <= 2, `repeated more often than allowed: ${where}`);
    const isAccepted = accepted.includes(recipient);
    if (isAccepted) assert.ok(is === 'sent' || (is === 'queued' && isUnapplied), where);
    else if (is === 'bounced')
      assert.ok(refusedMessages.has(recipient) || ['550', '554'].includes(replies.at(-1)?.slice(0, 3) ?? ''), where);
    else if (is === 'rejected') assert.ok(refusedMessages.has(recipient), where);
    else if (is === 'failed') {
      const error = own.get(recipient)?.error ?? (await errorOf(id));
      assert.match(error, unknown.has(recipient) ? /./ : /Given up after/, where);
    } else assert.equal(is, 'queued', where);
    assert.equal(is === 'queued' && isEnded, false, where);
  }
  checkEvents(run, details.timeline, refusedMessages);
  checkMessages(taken);
  return { status, details };
}

async function errorOf(id: string): Promise<string> {
  const { rows } = await pool.query<{ error: string }>('SELECT error FROM emails WHERE id = $1', [id]);
  return rows[0]?.error ?? '';
}

function checkEvents(
  { asked }: Run,
  timeline: readonly { readonly type: string; readonly recipient: string | null }[],
  refusedMessages: ReadonlySet<string>,
) {
  assert.ok(timeline.filter(({ type }) => type === 'email.sent').length <= 1, 'sent once');
  for (const { type, recipient } of timeline) {
    if (type !== 'email.bounced' || recipient === null) continue;
    const last = asked.get(recipient)?.at(-1) ?? '';
    assert.ok(
      last === NO_MAILBOX || last === SPAM || refusedMessages.has(recipient),
      `${recipient} bounced after ${last}`,
    );
  }
}

/** All transactions of an email transfer the same message. */
function checkMessages(taken: readonly Transaction[]) {
  const heads = taken.map(({ message }) => {
    const [head = ''] = message.replace(/\r\n[ \t]+/g, ' ').split('\r\n\r\n');
    return head.split('\r\n').filter((line) => /^(?:to|cc|bcc|message-id|subject|from):/i.test(line));
  });
  for (const head of heads) assert.deepEqual(head, heads[0]);
}

test(`each recipient of ${SCRIPTS} scripts is delivered once, permanently refused, given up or still queued`, async (t) => {
  const start = async (hidesPipelining: boolean) => {
    const server = await answeringServer(t, answers, hidesPipelining);
    return [server, smtp(server.url)] as const;
  };
  const [pipelined, plain] = [await start(false), await start(true)];
  const scripts = fc.sample(script, { numRuns: SCRIPTS, seed: SEED });
  const counts = new Map<string, number>();
  await mapConcurrently([...scripts.entries()], CONCURRENCY, async ([n, script]) => {
    const domain = `s${n}.example.net`;
    const run: Run = { script, asked: new Map(), transactions: 0 };
    runs.set(domain, run);
    const [server, shared] = script.pipelining ? pipelined : plain;
    // The limit that one server states for its messages must not hold for the others.
    const provider = script.messageLimit === null ? shared : smtp(server.url);
    const delivered = await deliver(script, domain, provider);
    const taken = server.transactions.filter(({ recipients }) => recipients[0]?.endsWith(`@${domain}`));
    try {
      const { details, status } = await check(run, delivered, taken);
      for (const address of delivered.addresses) {
        const is = details.recipients.find(({ recipient }) => recipient === address)?.status ?? status;
        counts.set(is, (counts.get(is) ?? 0) + 1);
      }
    } catch (error) {
      throw new Error(`script ${n}: ${JSON.stringify(script)}`, { cause: error });
    }
  });
  t.diagnostic(JSON.stringify(Object.fromEntries(counts)));
  const { rows } = await pool.query<{ email: string }>('SELECT email FROM suppressions WHERE org_id = $1', [orgId]);
  assert.ok(rows.length > 0);
  for (const { email } of rows) assert.equal(runOf(email).asked.get(email)?.at(-1), NO_MAILBOX, email);
});
