import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { emailChannel } from '../../src/delivery/email/channel.ts';
import { giveUp } from '../../src/delivery/endings.ts';
import { SUPPRESSED_AFTER_CALL_ERROR } from '../../src/domain/email/suppression.ts';
import { newId } from '../../src/lib/ids.ts';
import { projectFeedback } from '../../src/projection/feedback.ts';
import { findUnreported } from '../../src/store/emails/stuck.ts';
import { addSuppressions } from '../../src/store/suppressions/suppressions.ts';
import { organizationFixture } from '../support/organization.ts';
import { type Act, harness, harnessWithProvider, ScriptedProvider, sent } from './harness.ts';

const { pool, orgId } = await organizationFixture(10);
const BUSY = { kind: 'busy', detail: '503' } as const;

let count = 0;
/** A marketing email to two new addresses. */
function toTwo() {
  const [a, b] = [`a-${++count}@example.net`, `b-${count}@example.net`];
  return { a, b, fields: { marketing: true, to: [a, b] } };
}

const unsubscribe = (email: string) =>
  addSuppressions(pool, [{ id: newId('sup'), org_id: orgId, email, origin: 'unsubscribe' }]);

/** The status of each recipient of an email, in the order of their addresses. */
async function statusesOf(id: string): Promise<string[]> {
  const { rows } = await pool.query<{ status: string }>(
    `SELECT status FROM email_recipients WHERE email_id = $1 ORDER BY recipient`,
    [id],
  );
  return rows.map(({ status }) => status);
}

describe('the provider of a marketing email in copies', () => {
  for (const ending of ['suppressed', 'failed'] as const)
    test(`is the one that accepted the others if the last copy is ${ending}, so that overdue reports are fetched`, async () => {
      const { deps, provider, accept, deliverOne, email } = harnessWithProvider(pool, orgId);
      const { b, fields } = toTwo();
      const member = await accept(fields);
      provider.acts.push((taken, call) => provider.take(taken, call), BUSY, BUSY);
      assert.equal((await deliverOne(member)).state, 'again');
      if (ending === 'suppressed') await unsubscribe(b);
      await deliverOne(member);
      if (ending === 'failed') await giveUp(deps, emailChannel(deps), [member.id], 1, member.id);
      assert.deepEqual(await statusesOf(member.id), ['sent', ending]);
      const row = await email(member.id);
      assert.deepEqual([row.status, row.provider], ['sent', 'postmark']);
      await pool.query(`UPDATE emails SET last_event_at = now() - interval '20 minutes' WHERE id = $1`, [member.id]);
      const unreported = await findUnreported(pool, 100);
      assert.deepEqual(unreported.find(({ id }) => id === member.id)?.message_ids, ['postmark 1']);
    });

  test('is the one that accepted a copy, also if another one was called later', async () => {
    const postmark = new ScriptedProvider('postmark');
    const smtp = new ScriptedProvider('smtp', false);
    const { deps, accept, deliverOne, email } = harness(pool, orgId, [postmark, smtp]);
    const member = await accept(toTwo().fields);
    postmark.refuses = () => 'not now';
    smtp.acts.push((taken, call) => smtp.take(taken, call), BUSY);
    assert.equal((await deliverOne(member)).state, 'again');
    postmark.refuses = () => undefined;
    postmark.acts.push(BUSY);
    assert.equal((await deliverOne(member)).state, 'again');
    await giveUp(deps, emailChannel(deps), [member.id], 1, member.id);
    const row = await email(member.id);
    assert.deepEqual([row.status, row.provider], ['sent', 'smtp']);
  });

  test('is the one that was asked if a restored backup is older than the record of the copies', async () => {
    const { provider, accept, deliverOne, die, email } = harnessWithProvider(pool, orgId);
    const member = await accept(toTwo().fields);
    await die(member, provider, 'call_1', false);
    for (const copy of [0, 1]) provider.take({ id: member.id, copy }, 'call_1');
    assert.equal((await deliverOne(member)).state, 'ended');
    assert.deepEqual(await statusesOf(member.id), ['sent', 'sent']);
    const row = await email(member.id);
    assert.deepEqual([row.status, row.provider], ['sent', 'postmark']);
  });

  test('is looked up if reports about all copies came before the answer, which was lost', async () => {
    const { provider, accept, deliverOne, email, timeline } = harnessWithProvider(pool, orgId);
    const { a, b, fields } = toTwo();
    const member = await accept(fields);
    const lose: Act = (taken, call) => (provider.take(taken, call), { kind: 'unknown', detail: 'no answer' });
    provider.acts.push(lose, lose);
    assert.equal((await deliverOne(member)).state, 'again');
    const report = { emailId: member.id, change: 'delivered' } as const;
    await projectFeedback(pool, [
      { ...report, recipient: a, dedupeKey: 'a' },
      { ...report, recipient: b, dedupeKey: 'b' },
    ]);
    assert.deepEqual(await deliverOne(member), sent(member.id));
    const row = await email(member.id);
    assert.deepEqual([row.status, row.provider, provider.calls.length], ['delivered', 'postmark', 1]);
    assert.deepEqual(await timeline(member.id), ['queued', 'sent', 'delivered', 'delivered']);
    assert.deepEqual(await statusesOf(member.id), ['delivered', 'delivered']);
  });
});

describe('a copy of a marketing email that an SMTP server may have accepted', () => {
  for (const isRepeated of [false, true])
    test(`has failed if its recipient unsubscribes ${isRepeated ? 'after it was refused for now' : 'before it is sent again'}`, async () => {
      const { provider, accept, deliverOne, email, outcomes, timeline } = harnessWithProvider(pool, orgId, {}, 'smtp');
      const { b, fields } = toTwo();
      const member = await accept(fields);
      const unknown = { kind: 'unknown', detail: 'no answer' } as const;
      provider.acts.push({ kind: 'rejected', detail: 'malformed' }, unknown);
      assert.equal((await deliverOne(member)).state, 'again');
      if (isRepeated) {
        provider.acts.push(BUSY);
        assert.equal((await deliverOne(member)).state, 'again');
      }
      await unsubscribe(b);
      assert.deepEqual(await deliverOne(member), { id: member.id, state: 'ended', status: 'failed' });
      assert.deepEqual(await statusesOf(member.id), ['rejected', 'failed']);
      assert.equal((await email(member.id)).error, SUPPRESSED_AFTER_CALL_ERROR);
      assert.deepEqual(await outcomes(member.id), isRepeated ? ['risked', 'again'] : ['risked']);
      assert.deepEqual(await timeline(member.id), ['queued', 'failed']);
    });

  test('is suppressed if the server refused it for now', async () => {
    const { provider, accept, deliverOne } = harnessWithProvider(pool, orgId, {}, 'smtp');
    const { b, fields } = toTwo();
    const member = await accept(fields);
    provider.acts.push({ kind: 'rejected', detail: 'malformed' }, BUSY);
    assert.equal((await deliverOne(member)).state, 'again');
    await unsubscribe(b);
    assert.deepEqual(await deliverOne(member), { id: member.id, state: 'ended', status: 'rejected' });
    assert.deepEqual(await statusesOf(member.id), ['rejected', 'suppressed']);
  });
});
