import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, describe, test, type TestContext } from 'node:test';
import { emailChannel } from '../../src/delivery/email/channel.ts';
import { giveUp } from '../../src/delivery/endings.ts';
import type { SendOutcome } from '../../src/domain/email/retry.ts';
import { projectFeedback } from '../../src/projection/feedback.ts';
import { makePool } from '../../src/store/postgres/pool.ts';
import { acceptText, connect } from '../store/chats.ts';
import { accept, newEmail, organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { lockTable } from '../support/locks.ts';
import { chatHarness, ScriptedChat } from './chat-harness.ts';
import { harness, harnessWithProvider, ScriptedProvider } from './harness.ts';

const database = await useDatabase(10);
const orgId = await organization(database.pool);
/** Statements that wait for a lock fail soon. */
const pool = makePool(`${database.url}?lock_timeout=200`, 'test', 5, () => undefined);
after(() => pool.end());

/** Locks a table like CREATE INDEX. @returns a function that unlocks it */
const lock = (t: TestContext, table: string) => lockTable(t, database.pool, table, 'SHARE');

const make = () => harnessWithProvider(pool, orgId, {}, 'smtp');

describe('while the tables of events are locked', () => {
  const cases: [SendOutcome | undefined, string, string][] = [
    [undefined, 'sent', 'sent'],
    [{ kind: 'rejected', detail: 'no' }, 'rejected', 'refused'],
    [{ kind: 'bounced', reason: 'mailbox_full', detail: 'full' }, 'bounced', 'refused'],
  ];
  for (const [outcome, status, attempt] of cases)
    test(`an outcome of ${status} is recorded, the email not sent again, and ${status} after the lock`, async (t) => {
      const { provider, accept: acceptOne, deliverOne, deps, outcomes, age, email, timeline } = make();
      const member = await acceptOne();
      if (outcome) provider.acts.push(outcome);
      const unlock = await lock(t, 'email_events');
      for (let round = 0; round < 2; round++) {
        assert.equal((await deliverOne(member)).state, 'again');
        assert.deepEqual(await outcomes(member.id), [attempt]);
        await age(member.id, 3_600);
      }
      assert.equal((await giveUp(deps, emailChannel(deps), [member.id], 1, member.id)).get(member.id), 'queued');
      await unlock();
      assert.deepEqual(await deliverOne(member), { id: member.id, state: 'ended', status, provider: 'smtp' });
      assert.equal(provider.calls.length, 1);
      const row = await email(member.id);
      assert.deepEqual([row.status, row.provider], [status, 'smtp']);
      if (status === 'sent') assert.equal(row.provider_message_id, 'smtp 1');
      assert.deepEqual(await timeline(member.id), ['queued', status]);
      const { rows } = await pool.query('SELECT FROM attempts WHERE message_id = $1 AND changes IS NOT NULL', [
        member.id,
      ]);
      assert.deepEqual(rows, []);
    });

  test('an answer is applied also after a report about the email', async (t) => {
    const { provider, accept: acceptOne, deliverOne, email, timeline } = make();
    const [a, b] = [`a-${randomUUID()}@one.example`, `b-${randomUUID()}@two.example`];
    for (const to of [[a], [a, b]]) {
      const member = await acceptOne({ to });
      const refused = { recipient: b, reason: 'mailbox_not_found', detail: '550' } as const;
      const act = { kind: 'sent', messageId: `of ${member.id}`, ...(to.length > 1 && { refused: [refused] }) } as const;
      provider.acts.push(act);
      const unlock = await lock(t, 'email_events');
      assert.equal((await deliverOne(member)).state, 'again');
      await unlock();
      await projectFeedback(pool, [{ emailId: member.id, change: 'delivered', recipient: a, dedupeKey: 'd' }]);
      assert.equal((await email(member.id)).status, 'delivered');
      assert.equal((await deliverOne(member)).state, 'ended');
      const row = await email(member.id);
      assert.deepEqual([row.provider, row.provider_message_id], ['smtp', `of ${member.id}`]);
      const bounced = to.length > 1 ? ['bounced'] : [];
      assert.deepEqual((await timeline(member.id)).toSorted(), ['queued', 'sent', 'delivered', ...bounced].toSorted());
      const { rows } = await pool.query(`SELECT FROM suppressions WHERE email = $1`, [b]);
      assert.equal(rows.length, bounced.length);
      assert.equal((await deliverOne(member)).state, 'ended', 'once');
      assert.equal((await timeline(member.id)).length, 3 + bounced.length);
    }
  });

  test('answers of several providers that are applied together keep their providers', async (t) => {
    const [postmark, smtp] = [new ScriptedProvider('postmark'), new ScriptedProvider('smtp', false)];
    postmark.refuses = ({ subject }) => (subject === 'large' ? 'too large' : undefined);
    const { accept: acceptOne, deliver, email } = harness(pool, orgId, [postmark, smtp]);
    const fields = { marketing: true, to: ['a@one.example', 'b@two.example'] };
    const members = [await acceptOne(fields), await acceptOne({ ...fields, subject: 'large' })];
    const unlock = await lock(t, 'email_events');
    for (const { state } of await deliver(...members)) assert.equal(state, 'again');
    await unlock();
    for (const { state } of await deliver(...members)) assert.equal(state, 'ended');
    const providers = await Promise.all(members.map(async ({ id }) => (await email(id)).provider));
    assert.deepEqual(providers, ['postmark', 'smtp']);
    assert.deepEqual([postmark.calls.length, smtp.calls.length], [1, 1]);
  });

  test('copies of a marketing email that were taken are not sent again, and the others are sent', async (t) => {
    const { provider, deliverOne, email, outcomes } = make();
    const mail = newEmail({ marketing: true, to: ['a@one.example', 'b@two.example'] });
    await accept(database.pool, orgId, [mail]);
    const member = { id: mail.id, version: 0 };
    let unlock = async (): Promise<void> => undefined;
    provider.acts.push(
      async (taken, call) => {
        unlock = await lock(t, 'email_recipients');
        return provider.take(taken, call);
      },
      { kind: 'busy', detail: 'later' },
    );
    assert.equal((await deliverOne(member)).state, 'again');
    assert.deepEqual(await outcomes(member.id), ['sent'], 'of a part');
    await unlock();
    for (let round = 0; round < 3 && (await email(member.id)).status === 'queued'; round++) await deliverOne(member);
    assert.equal((await email(member.id)).status, 'sent');
    assert.equal(provider.took.length, 2, 'each copy once');
    assert.equal(new Set(provider.tookIds).size, 2);
  });

  test('the outcome of a chat-app message is recorded, and it is not sent again', async (t) => {
    const number = await connect(database.pool, orgId, 'meta');
    const id = await acceptText(database.pool, orgId, number.number);
    const provider = new ScriptedChat('meta');
    const { deliver, outcomes, age } = chatHarness(pool, provider);
    const unlock = await lock(t, 'chat_events');
    for (let round = 0; round < 2; round++) {
      assert.equal((await deliver(id)).state, 'again');
      assert.deepEqual(await outcomes(id), ['sent']);
      await age(id, 3_600);
    }
    await unlock();
    assert.deepEqual(await deliver(id), { state: 'ended', status: 'sent', provider: 'meta' });
    assert.equal(provider.took.length, 1);
  });
});

test('nothing is claimed while outcomes cannot be recorded', async (t) => {
  const { provider, acceptMany, deliver, deliverOne, deps, outcomes } = make();
  const [first, second] = await acceptMany(2);
  assert.ok(first && second);
  let unlock = async (): Promise<void> => undefined;
  provider.acts.push(async (taken, call) => {
    unlock = await lock(t, 'attempts');
    return provider.take(taken, call);
  });
  const delivery = deliver(first);
  await eventually('recording is blocked', () => deps.recorder.isBlocked());
  const blocked = await deliverOne(second);
  assert.deepEqual(blocked, {
    id: second.id,
    state: 'again',
    reason: 'The results of calls cannot be recorded now.',
    afterMs: 2_000,
    postponed: true,
  });
  assert.deepEqual([await outcomes(second.id), provider.calls.length], [[], 1]);
  await unlock();
  assert.equal((await delivery)[0]?.state, 'ended');
  assert.equal((await deliverOne(second)).state, 'ended');
  assert.equal(provider.took.length, 2);
});
