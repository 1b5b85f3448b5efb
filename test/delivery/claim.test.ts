import assert from 'node:assert/strict';
import { performance } from 'node:perf_hooks';
import { describe, test } from 'node:test';
import { isClaimExpired } from '../../src/delivery/call.ts';
import type { EmailDeps } from '../../src/delivery/email/contract.ts';
import { EMAIL_STATUSES } from '../../src/domain/email/email.ts';
import { project, projectReschedule } from '../../src/projection/emails.ts';
import { force, inMs } from '../store/mail.ts';
import { organizationFixture } from '../support/organization.ts';
import { assertRemaining } from '../support/remaining.ts';
import { harness, harnessWithProvider, ScriptedProvider, sent } from './harness.ts';

const { pool, orgId } = await organizationFixture(10);

const make = (settings?: Partial<EmailDeps>) => harnessWithProvider(pool, orgId, settings);

/** Moves a scheduled email's time to a second ago, as if it had waited. */
const makeDue = (id: string) =>
  pool.query(`UPDATE emails SET scheduled_at = now() - interval '1 second' WHERE id = $1`, [id]);

describe('an email is claimed', () => {
  test('when it is queued', async () => {
    const { accept, deliverOne, provider, email, timeline, attempts } = make();
    const member = await accept();
    assert.deepEqual(await deliverOne(member), sent(member.id));
    const row = await email(member.id);
    assert.deepEqual([row.status, row.provider, row.provider_message_id], ['sent', 'postmark', 'postmark 1']);
    assert.deepEqual(await timeline(member.id), ['queued', 'sent']);
    const [attempt, ...more] = await attempts(member.id);
    assert.equal(more.length, 0);
    assert.deepEqual([attempt?.n, attempt?.provider, attempt?.outcome, attempt?.detail], [1, 'postmark', 'sent', null]);
    assert.deepEqual(provider.took, [{ id: member.id, call: attempt?.call, messageId: 'postmark 1' }]);
  });

  test('when it was scheduled and is due: it is queued during the call', async () => {
    const { accept, deliverOne, provider, email, timeline } = make();
    const member = await accept({ scheduled_at: inMs(3_600_000) });
    await makeDue(member.id);
    provider.acts.push(async (mail, call) => {
      const { status } = await email(mail.id);
      assert.equal(status, 'queued');
      return provider.take(mail, call);
    });
    assert.equal((await deliverOne(member)).state, 'ended');
    assert.deepEqual(await timeline(member.id), ['scheduled', 'sent']);
  });

  test('not before it is due, by the database’s clock', async () => {
    const { accept, deliverOne, provider, email } = make();
    const dueAt = inMs(60_000);
    const member = await accept({ scheduled_at: dueAt });
    const result = await deliverOne(member);
    assert.ok(result.state === 'waiting');
    assert.deepEqual([result.version, result.dueAt], [0, dueAt]);
    assertRemaining(result.inMs, 60_000);
    assert.equal((await email(member.id)).status, 'scheduled');
    assert.deepEqual(provider.calls, []);
  });

  test('not at an outdated version, even when it is due', async () => {
    const { accept, deliverOne, provider } = make();
    const member = await accept({ scheduled_at: inMs(3_600_000) });
    await projectReschedule(pool, orgId, member.id, inMs(7_200_000));
    await makeDue(member.id);
    const result = await deliverOne(member);
    assert.ok(result.state === 'waiting');
    assert.deepEqual([result.version, result.inMs], [1, 0]);
    assert.equal((await deliverOne({ ...member, version: 1 })).state, 'ended');
    assert.equal(provider.took.length, 1);
  });

  test('not when it was claimed at another version: another workflow delivers it', async () => {
    const { accept, deliverOne, provider, email } = make();
    const member = await accept({ scheduled_at: inMs(3_600_000) });
    await projectReschedule(pool, orgId, member.id, inMs(60_000));
    await project(pool, 'claimed', [{ id: member.id }]);
    assert.deepEqual(await deliverOne(member), { id: member.id, state: 'ended', status: 'queued' });
    assert.equal((await email(member.id)).status, 'queued');
    assert.deepEqual(provider.calls, []);
    assert.equal((await deliverOne({ ...member, version: 1 })).state, 'ended');
    assert.equal(provider.took.length, 1);
  });

  for (const status of EMAIL_STATUSES.filter((each) => each !== 'queued' && each !== 'scheduled'))
    test(`not when it is ${status}; its result has that status`, async () => {
      const { accept, deliverOne, provider, attempts } = make();
      const member = await accept();
      await force(pool, member.id, status);
      await pool.query(`UPDATE emails SET provider = 'smtp' WHERE id = $1`, [member.id]);
      assert.deepEqual(await deliverOne(member), { id: member.id, state: 'ended', status, provider: 'smtp' });
      assert.deepEqual([provider.calls, await attempts(member.id)], [[], []]);
    });

  test('not when it does not exist', async () => {
    const { deliverOne, provider } = make();
    const result = await deliverOne({ id: 'em_none', version: 0 });
    assert.deepEqual(result, { id: 'em_none', state: 'ended', status: 'canceled' });
    assert.deepEqual(provider.calls, []);
  });

  test('by an attempt that is committed before its provider is called', async () => {
    const { accept, deliverOne, provider, attempts } = make();
    const member = await accept();
    provider.acts.push(async (mail, call) => {
      const [attempt] = await attempts(mail.id);
      assert.deepEqual(
        [attempt?.n, attempt?.call, attempt?.provider, attempt?.outcome, attempt?.ended_at],
        [1, call, 'postmark', null, null],
      );
      return provider.take(mail, call);
    });
    assert.equal((await deliverOne(member)).state, 'ended');
    assert.match((await attempts(member.id))[0]?.call ?? '', /^call_[0-9a-z]{26}$/);
  });
});

describe('the provider of an email', () => {
  function two() {
    const [first, second] = [new ScriptedProvider('postmark'), new ScriptedProvider('smtp', false)];
    return { first, second, ...harness(pool, orgId, [first, second]) };
  }

  test('is the first that can deliver it', async () => {
    const { first, second, accept, deliver } = two();
    first.refuses = ({ subject }) => (subject === 'large' ? 'Postmark accepts at most 3 bytes.' : undefined);
    const [small, large] = [await accept(), await accept({ subject: 'large' })];
    const results = await deliver(small, large);
    assert.equal(results.filter((result) => result.state === 'ended' && result.status === 'sent').length, 2);
    assert.deepEqual([first.tookIds, second.tookIds], [[small.id], [large.id]]);
    assert.notEqual(first.calls[0]?.call, second.calls[0]?.call);
  });

  test('is none when all refuse it: the email fails with every limit', async () => {
    const { first, second, accept, deliverOne, email, timeline, attempts } = two();
    first.refuses = () => 'Postmark accepts at most 3 bytes, not 4.';
    second.refuses = () => 'SMTP accepts nothing today.';
    const member = await accept({ scheduled_at: inMs(60_000) });
    await makeDue(member.id);
    assert.deepEqual(await deliverOne(member), { id: member.id, state: 'ended', status: 'failed' });
    const { status, error, provider } = await email(member.id);
    assert.deepEqual(
      [status, error, provider],
      [
        'failed',
        'No provider can deliver this email. Postmark accepts at most 3 bytes, not 4. SMTP accepts nothing today.',
        null,
      ],
    );
    assert.deepEqual(await timeline(member.id), ['scheduled', 'failed']);
    assert.deepEqual([first.calls, second.calls, await attempts(member.id)], [[], [], []]);
  });

  test('is not called for an email that cannot be parsed: it fails and blocks no other', async () => {
    const { accept, deliver, email } = two();
    const [broken, fine] = [await accept(), await accept()];
    await pool.query(`UPDATE emails SET "to" = '["not an address"]' WHERE id = $1`, [broken.id]);
    const results = await deliver(broken, fine);
    assert.deepEqual(
      new Set(results.map((result) => 'status' in result && result.status)),
      new Set(['failed', 'sent']),
    );
    const { status, error } = await email(broken.id);
    assert.equal(status, 'failed');
    assert.match(error ?? '', /^This email cannot be sent: a stored address can no longer be read: /);
  });
});

describe('a worker that was frozen between its claim and its call', () => {
  test('does not send', async (t) => {
    const { accept, deliverOne, provider, outcomes } = make();
    const member = await accept();
    const real = performance.now.bind(performance);
    let frozenMs = 0;
    // Its provider is chosen when it is claimed.
    provider.refuses = () => {
      frozenMs = 21_000;
      return undefined;
    };
    t.mock.method(performance, 'now', () => real() + frozenMs);
    const result = await deliverOne(member);
    t.mock.restoreAll();
    assert.ok(result.state === 'again' && result.postponed && result.reason === 'The worker was too slow to send it.');
    assert.deepEqual(provider.calls, []);
    assert.deepEqual(await outcomes(member.id), [], 'it was not attempted');
    assert.equal((await deliverOne(member)).state, 'ended');
    assert.equal(provider.took.length, 1);
  });
});

test('a claim expires by the later of the monotonic and the system clock', () => {
  const [claimedAt, claimedAtUnixMs] = [performance.now(), Date.now()];
  assert.equal(isClaimExpired({ claimedAt, claimedAtUnixMs }), false);
  assert.equal(isClaimExpired({ claimedAt, claimedAtUnixMs: claimedAtUnixMs - 20_001 }), true);
  assert.equal(isClaimExpired({ claimedAt: claimedAt - 20_001, claimedAtUnixMs }), true);
  assert.equal(isClaimExpired({ claimedAt, claimedAtUnixMs: claimedAtUnixMs + 60_000 }), false);
});
