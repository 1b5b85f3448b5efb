import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { ambiguousEnded, claimed, handedOver } from '../../src/telemetry/topics.ts';
import { organizationFixture } from '../support/organization.ts';
import { office, ScriptedProvider } from './office.ts';

const { pool, orgId } = await organizationFixture(10);

/** What is told from now on: whole seconds of times. */
function heard(t: TestContext) {
  const news: { late: number[]; after: number[]; ambiguous: [outcome: string, count: number][] } = {
    late: [],
    after: [],
    ambiguous: [],
  };
  const whole = (seconds: readonly number[]) => seconds.map(Math.floor);
  t.after(claimed.listen(({ latenessSeconds }) => news.late.push(...whole(latenessSeconds))));
  t.after(handedOver.listen(({ secondsAfterDue: seconds }) => news.after.push(...whole(seconds))));
  t.after(ambiguousEnded.listen(({ outcome, count }) => news.ambiguous.push([outcome, count])));
  return news;
}

/** The log's lines, parsed. */
const linesOf = (lines: string[]) => lines.map((line) => JSON.parse(line) as Record<string, unknown>);

test('how late a scheduled email was claimed, and how long after its time a provider had taken it', async (t) => {
  const news = heard(t);
  const there = office(pool, orgId, [new ScriptedProvider()]);
  const [scheduled, atOnce] = await there.acceptMany(2);
  assert.ok(scheduled && atOnce, 'two emails');
  await pool.query(
    `UPDATE emails SET status = 'scheduled', scheduled_at = now() - interval '7.2 seconds' WHERE id = $1`,
    [scheduled.id],
  );
  await pool.query(`UPDATE emails SET created_at = now() - interval '30.2 seconds' WHERE id = $1`, [atOnce.id]);
  await there.deliver(scheduled, atOnce);
  assert.deepEqual(news, { late: [7], after: [7, 30], ambiguous: [] });
});

test('an email that is not taken is not handed over', async (t) => {
  const news = heard(t);
  const provider = new ScriptedProvider();
  provider.acts.push({ kind: 'busy', detail: 'later' }, { kind: 'rejected', detail: 'no' });
  const there = office(pool, orgId, [provider]);
  await there.deliver(...(await there.acceptMany(2)));
  assert.deepEqual(news, { late: [], after: [], ambiguous: [] });
});

test('what became of calls whose end nobody saw', async (t) => {
  const news = heard(t);
  const postmark = new ScriptedProvider('postmark');
  const there = office(pool, orgId, [postmark]);
  const [found, lost] = await there.acceptMany(2);
  assert.ok(found && lost, 'two emails');
  await there.die(found, postmark, 'call_found', true);
  await there.deliverOne(found);
  await there.die(lost, postmark, 'call_lost', false);
  await there.deliverOne(lost);
  assert.deepEqual(news.ambiguous, [['found', 1]], 'a first "not found" is not confirmed');
  await there.age(lost.id, 61);
  await there.deliverOne(lost);
  assert.deepEqual(news.ambiguous, [
    ['found', 1],
    ['lost', 1],
  ]);
  const smtp = new ScriptedProvider('smtp', false);
  for (const [ambiguousSend, outcome] of [
    ['retry', 'risked'],
    ['fail', 'given_up'],
  ] as const) {
    const other = office(pool, orgId, [smtp], { ambiguousSend });
    const member = await other.accept();
    await other.die(member, smtp, `call_${outcome}`, false);
    await other.age(member.id, 721);
    await other.deliverOne(member);
    assert.deepEqual(news.ambiguous.at(-1), [outcome, 1]);
  }
});

test('one line tells a call: of one email all about it, of several how many came to what', async () => {
  const provider = new ScriptedProvider();
  provider.acts.push(
    { kind: 'sent', messageId: 'm' },
    { kind: 'busy', detail: 'later' },
    { kind: 'sent', messageId: 'n' },
  );
  const there = office(pool, orgId, [provider]);
  const one = await there.accept();
  await there.deliver(one);
  const [line] = linesOf(there.lines);
  assert.equal(there.lines.length, 1, there.lines.join());
  assert.deepEqual([line?.['msg'], line?.['email'], line?.['outcome']], ['email handed to a provider', one.id, 'sent']);
  assert.equal(typeof line?.['ms'], 'number');

  there.lines.length = 0;
  const two = await there.acceptMany(2);
  await there.deliver(...two);
  const told = linesOf(there.lines);
  const [call, ...each] = told;
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
