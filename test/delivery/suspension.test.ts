import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { makeMessageActivities } from '../../activities/index.ts';
import { emailChannel } from '../../src/delivery/email/channel.ts';
import { giveUp } from '../../src/delivery/endings.ts';
import { resumeOrganization, suspendOrganization } from '../../src/accounts/suspension.ts';
import { findOverdue } from '../../src/store/emails/stuck.ts';
import { readDue } from '../../src/store/emails/pending-work.ts';
import { acceptText, chatRow, connect } from '../store/chats.ts';
import { inMs, organization } from '../store/mail.ts';
import { organizationFixture } from '../support/organization.ts';
import { chatHarness, ScriptedChat } from './chat-harness.ts';
import { harness, harnessWithProvider } from './harness.ts';

const { pool, orgId } = await organizationFixture(10);
afterEach(() => resumeOrganization(pool, orgId));

const suspend = () => suspendOrganization(pool, orgId, null);
const resume = () => resumeOrganization(pool, orgId);
const make = () => harnessWithProvider(pool, orgId);

describe('email of a suspended organization', () => {
  test('waits without an attempt when it is due, and is sent once after the organization is resumed', async () => {
    const { provider, accept, deliverOne, attempts, email } = make();
    const queued = await accept();
    const scheduled = await accept({ scheduled_at: inMs(60_000) });
    await pool.query(`UPDATE emails SET scheduled_at = now() - interval '1 s' WHERE id = $1`, [scheduled.id]);
    await suspend();
    for (const member of [queued, scheduled]) {
      const result = await deliverOne(member);
      assert.ok(result.state === 'again' && result.postponed && result.reason === 'Its organization is suspended.');
      assert.ok((result.afterMs ?? 0) >= 5_000 && (result.afterMs ?? 0) <= 900_000, `${result.afterMs} ms`);
      assert.deepEqual(await attempts(member.id), []);
    }
    assert.deepEqual(
      [(await email(queued.id)).status, (await email(scheduled.id)).status],
      ['queued', 'scheduled'],
      'what is scheduled can still be canceled',
    );
    await resume();
    for (const member of [queued, scheduled]) assert.equal((await deliverOne(member)).state, 'ended');
    assert.deepEqual(provider.tookIds, [queued.id, scheduled.id]);
  });

  test('does not block email of other organizations in its group', async () => {
    const { provider, accept, deliver } = make();
    const theirs = harness(pool, await organization(pool, 'others.example'), [provider]);
    const members = [
      await accept(),
      await theirs.accept({ from: 'a@others.example', from_domain: 'others.example' }),
      await accept(),
    ];
    await suspend();
    const results = new Map((await deliver(...members)).map((result) => [result.id, result.state]));
    assert.deepEqual(
      members.map(({ id }) => results.get(id)),
      ['again', 'ended', 'again'],
    );
  });

  test('is reconciled if it is ambiguous, and not sent again', async () => {
    const { provider, accept, die, deliverOne, age, email } = make();
    const [taken, untaken] = [await accept(), await accept()];
    await die(taken, provider, 'call_taken', true);
    await die(untaken, provider, 'call_untaken', false);
    for (const { id } of [taken, untaken]) await age(id, 600);
    await suspend();
    await deliverOne(taken);
    assert.equal((await email(taken.id)).status, 'sent');
    await deliverOne(untaken);
    await age(untaken.id, 600);
    assert.equal((await deliverOne(untaken)).state, 'again');
    assert.equal(provider.took.length, 1);
    assert.equal((await email(untaken.id)).status, 'queued');
  });

  test('is not failed because of its waiting time', async () => {
    const { provider, accept, deliverOne, deps, email } = make();
    const member = await accept();
    provider.acts.push({ kind: 'account', detail: 'The token is wrong.' });
    await deliverOne(member);
    await pool.query(`DELETE FROM provider_pauses`);
    await pool.query(`UPDATE attempts SET started_at = now() - interval '73 hours' WHERE message_id = $1`, [member.id]);
    await suspend();
    assert.equal((await giveUp(deps, emailChannel(deps), [member.id], 16, member.id)).get(member.id), 'queued');
    assert.equal((await email(member.id)).status, 'queued');
    await resume();
    assert.equal((await giveUp(deps, emailChannel(deps), [member.id], 16, member.id)).get(member.id), 'failed');
  });

  test('is neither overdue nor part of the backlog', async () => {
    await pool.query('DELETE FROM outbox; DELETE FROM emails');
    const { acceptMany } = make();
    const [queued, scheduled, copied] = await acceptMany(3);
    await pool.query(`DELETE FROM outbox`);
    await pool.query(`UPDATE emails SET status = 'sent', created_at = now() - interval '1 hour' WHERE id = $1`, [
      copied?.id,
    ]);
    await pool.query(
      `INSERT INTO email_recipients (email_id, recipient, status) VALUES ($1, 'ada@example.net', 'queued')`,
      [copied?.id],
    );
    await pool.query(`UPDATE emails SET created_at = now() - interval '1 hour' WHERE id = $1`, [queued?.id]);
    await pool.query(`UPDATE emails SET status = 'scheduled', scheduled_at = now() - interval '1 hour' WHERE id = $1`, [
      scheduled?.id,
    ]);
    const counts = async () => [
      (await findOverdue(pool, 10)).length,
      (await readDue(pool)).find(({ fleet }) => fleet === 'email')?.count,
    ];
    assert.deepEqual(await counts(), [3, 2]);
    await suspend();
    assert.deepEqual(await counts(), [0, 0]);
    assert.ok((await readDue(pool)).every(({ oldest_seconds: oldest }) => oldest === 0));
  });
});

test('a chat-app message of a suspended organization waits, is not failed, and is sent after it is resumed', async () => {
  const provider = new ScriptedChat();
  const { deps, deliver, outcomes, age } = chatHarness(pool, provider);
  const { number } = await connect(pool, orgId);
  const [fresh, tried] = [await acceptText(pool, orgId, number), await acceptText(pool, orgId, number)];
  provider.acts.push({ kind: 'account', detail: 'Wrong token.', code: '20003' });
  await deliver(tried);
  await pool.query(`DELETE FROM provider_pauses`);
  await age(tried, 73 * 3_600);
  await suspend();
  const result = await deliver(fresh);
  assert.ok(result.state === 'again' && result.reason === 'Its organization is suspended.');
  assert.deepEqual(await outcomes(fresh), []);
  assert.equal(await makeMessageActivities(deps).giveUpChat({ id: tried, maximumAttempts: 16 }), 'queued');
  await resume();
  assert.equal((await deliver(fresh)).state, 'ended');
  assert.equal((await chatRow(pool, fresh)).status, 'sent');
});
