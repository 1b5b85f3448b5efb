import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { addSender } from '../../src/accounts/sms-senders.ts';
import { noLimits } from '../../src/intake/emails.ts';
import { sendSms } from '../../src/intake/sms.ts';
import { ambiguousCallsResolved, messagesClaimed, messagesSent } from '../../src/telemetry/topics.ts';
import { contents } from '../support/contents.ts';
import { organizationFixture } from '../support/organization.ts';
import { chatHarness, ScriptedChat } from './chat-harness.ts';
import { harness, harnessWithProvider, ScriptedProvider } from './harness.ts';

const { pool, orgId } = await organizationFixture(10);

/** Collects published values; times in whole seconds. */
function collect(t: TestContext) {
  const news: {
    late: [kind: string, seconds: number][];
    after: number[];
    ambiguous: [outcome: string, count: number][];
  } = {
    late: [],
    after: [],
    ambiguous: [],
  };
  const whole = (seconds: readonly number[]) => seconds.map(Math.floor);
  t.after(
    messagesClaimed.listen(({ kind, overdueSeconds }) => {
      for (const seconds of whole(overdueSeconds)) news.late.push([kind, seconds]);
    }),
  );
  t.after(messagesSent.listen(({ secondsAfterDue: seconds }) => news.after.push(...whole(seconds))));
  t.after(ambiguousCallsResolved.listen(({ outcome, count }) => news.ambiguous.push([outcome, count])));
  return news;
}

/** The log's lines, parsed. */
const linesOf = (lines: string[]) => lines.map((line) => JSON.parse(line) as Record<string, unknown>);

test('publishes the delay of claims, and of emails that a provider took', async (t) => {
  const news = collect(t);
  const set = harnessWithProvider(pool, orgId);
  const [scheduled, immediate] = await set.acceptMany(2);
  assert.ok(scheduled && immediate, 'two emails');
  await pool.query(
    `UPDATE emails SET status = 'scheduled', scheduled_at = now() - interval '7.2 seconds' WHERE id = $1`,
    [scheduled.id],
  );
  await pool.query(`UPDATE emails SET created_at = now() - interval '30.2 seconds' WHERE id = $1`, [immediate.id]);
  await set.deliver(scheduled, immediate);
  set.provider.acts.push({ kind: 'busy', detail: 'later' }, { kind: 'rejected', detail: 'no' });
  await set.deliver(...(await set.acceptMany(2)));
  assert.deepEqual(news, { late: [['email', 7]], after: [7, 30], ambiguous: [] });
});

test('publishes the delay of the claim of an SMS', async (t) => {
  const news = collect(t);
  await addSender(pool, orgId, '+12025550100', []);
  const request = { from: '+12025550100', to: '+4915123000000', text: 'Hi.', tags: [], scheduled_at: null };
  const { id } = await sendSms({ pool, wakeRelay: () => undefined, limits: noLimits(), contents }, { orgId }, request);
  await pool.query(
    `UPDATE chat_messages SET status = 'scheduled', scheduled_at = now() - interval '7.2 seconds' WHERE id = $1`,
    [id],
  );
  await chatHarness(pool, new ScriptedChat()).deliverSms(id);
  assert.deepEqual(news.late, [['sms', 7]]);
});

test('publishes how each ambiguous call was reconciled', async (t) => {
  const news = collect(t);
  const postmark = new ScriptedProvider('postmark');
  const set = harness(pool, orgId, [postmark]);
  const [found, lost] = await set.acceptMany(2);
  assert.ok(found && lost, 'two emails');
  await set.die(found, postmark, 'call_found', true);
  await set.deliverOne(found);
  await set.die(lost, postmark, 'call_lost', false);
  await set.deliverOne(lost);
  assert.deepEqual(news.ambiguous, [['found', 1]], 'a first "not found" is not confirmed');
  await set.age(lost.id, 61);
  await set.deliverOne(lost);
  assert.deepEqual(news.ambiguous, [
    ['found', 1],
    ['lost', 1],
  ]);
  const smtp = new ScriptedProvider('smtp', false);
  for (const [ambiguousSend, outcome] of [
    ['retry', 'risked'],
    ['fail', 'given_up'],
  ] as const) {
    const other = harness(pool, orgId, [smtp], { ambiguousSend });
    const member = await other.accept();
    await other.die(member, smtp, `call_${outcome}`, false);
    await other.age(member.id, 721);
    await other.deliverOne(member);
    assert.deepEqual(news.ambiguous.at(-1), [outcome, 1]);
  }
});

test('logs one line per call: the outcome of one email, or the count of each outcome', async () => {
  const provider = new ScriptedProvider();
  provider.acts.push(
    { kind: 'sent', messageId: 'm' },
    { kind: 'busy', detail: 'later' },
    { kind: 'sent', messageId: 'n' },
  );
  const set = harness(pool, orgId, [provider]);
  const one = await set.accept();
  await set.deliver(one);
  const [line] = linesOf(set.lines);
  assert.equal(set.lines.length, 1, set.lines.join());
  assert.deepEqual([line?.['msg'], line?.['email'], line?.['outcome']], ['email handed to a provider', one.id, 'sent']);
  assert.equal(typeof line?.['ms'], 'number');

  set.lines.length = 0;
  const two = await set.acceptMany(2);
  await set.deliver(...two);
  const logged = linesOf(set.lines);
  const [call, ...each] = logged;
  assert.deepEqual(
    [call?.['msg'], call?.['emails'], call?.['outcomes']],
    ['emails handed to a provider', 2, { busy: 1, sent: 1 }],
  );
  assert.deepEqual(
    each.map(({ level, email }) => [level, email]),
    two.map(({ id }) => [20, id]),
    'each by itself only at debug',
  );
});
