import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SendOutcome } from '../../src/domain/email/retry.ts';
import { SUPPRESSED_AFTER_CALL_ERROR } from '../../src/domain/email/suppression.ts';
import { newId } from '../../src/lib/ids.ts';
import { project } from '../../src/projection/emails.ts';
import { findTrackedEmails } from '../../src/store/emails/tracked.ts';
import { addSuppressions } from '../../src/store/suppressions/suppressions.ts';
import { organizationFixture } from '../support/organization.ts';
import { assertRemaining } from '../support/remaining.ts';
import { harness, harnessWithProvider, ScriptedProvider, sent } from './harness.ts';

const LOST: SendOutcome = { kind: 'unknown', detail: 'connection lost' };
const CALL = 'call_1';

const { pool, orgId } = await organizationFixture(10);

function make(canBeAsked: boolean, settings: Parameters<typeof harnessWithProvider>[2] = {}) {
  return harnessWithProvider(pool, orgId, settings, canBeAsked ? 'postmark' : 'smtp');
}
type Harness = ReturnType<typeof make>;
type Member = Awaited<ReturnType<Harness['accept']>>;

/** The causes of an ambiguous attempt; `took` is whether the provider has the email. */
const CAUSES: Readonly<Record<string, (harness: Harness, member: Member, took: boolean) => Promise<void>>> = {
  'no answer came': async ({ provider, deliverOne }, member, took) => {
    provider.acts.push((email, call) => {
      if (took) provider.take(email, call);
      return LOST;
    });
    assert.equal((await deliverOne(member)).state, 'again');
  },
  'the worker died': ({ provider, die }, member, took) => die(member, provider, CALL, took),
};

for (const [cause, happen] of Object.entries(CAUSES))
  describe(`after an ambiguous call: ${cause}`, () => {
    test('the provider is asked, and an email that it has is not sent again', async () => {
      const set = make(true);
      const member = await set.accept();
      await happen(set, member, true);
      assert.deepEqual(await set.deliverOne(member), sent(member.id));
      assert.deepEqual([set.provider.calls.length, set.provider.took.length, set.provider.asked], [1, 1, 1]);
      const row = await set.email(member.id);
      assert.deepEqual([row.status, row.provider, row.provider_message_id], ['sent', 'postmark', 'postmark 1']);
      assert.deepEqual(await set.timeline(member.id), ['queued', 'sent']);
      assert.deepEqual(await set.outcomes(member.id), ['sent']);
    });

    test('an email that is not found is searched again a minute later, and not sent before', async () => {
      const set = make(true);
      const member = await set.accept();
      await happen(set, member, false);
      for (const [seconds, checks] of [
        [0, 1],
        [30, 2],
        [29, 3],
      ] as const) {
        await set.age(member.id, seconds);
        const result = await set.deliverOne(member);
        assert.deepEqual([result.state, 'afterMs' in result && result.afterMs], ['again', 60_000]);
        assert.equal((await set.attempts(member.id))[0]?.checks, checks);
      }
      assert.equal(set.provider.calls.length, 1);
      await set.age(member.id, 1);
      assert.equal((await set.deliverOne(member)).state, 'ended');
      assert.deepEqual(await set.outcomes(member.id), ['lost', 'sent']);
      const before = cause === 'no answer came' ? 'connection lost. ' : '';
      assert.equal((await set.attempts(member.id))[0]?.detail, `${before}postmark does not have it.`);
      assert.deepEqual([set.provider.calls.length, set.provider.took.length], [2, 1]);
      assert.notEqual(set.provider.calls[0]?.call, set.provider.calls[1]?.call);
      assert.deepEqual(await set.timeline(member.id), ['queued', 'sent']);
    });

    test('an email that the search shows late is not sent again', async () => {
      const set = make(true);
      const member = await set.accept();
      await happen(set, member, true);
      set.provider.sees = false;
      assert.equal((await set.deliverOne(member)).state, 'again');
      set.provider.sees = true;
      await set.age(member.id, 61);
      assert.equal((await set.deliverOne(member)).state, 'ended');
      assert.deepEqual([set.provider.calls.length, set.provider.took.length], [1, 1]);
      assert.deepEqual(await set.outcomes(member.id), ['sent']);
    });

    test('a failed search is retried by policy and counted, and is no "not found"', async () => {
      const set = make(true);
      const { provider } = set;
      const member = await set.accept();
      await happen(set, member, true);
      const find = provider.find;
      provider.find = () => Promise.reject(new Error('503'));
      for (let checks = 1; checks <= 3; checks++) {
        assert.deepEqual(await set.deliverOne(member), {
          id: member.id,
          state: 'again',
          reason: 'The provider cannot be asked now.',
          checks,
        });
        assert.equal((await set.attempts(member.id))[0]?.checks, checks);
        await set.age(member.id, 600);
      }
      provider.find = find as NonNullable<typeof find>;
      assert.equal((await set.deliverOne(member)).state, 'ended');
      assert.deepEqual([provider.calls.length, provider.took.length], [1, 1]);
    });

    test('what the lost answer contained is looked up although a report has moved the email on', async () => {
      const set = make(true);
      for (const to of [['a@example.net'], ['b@example.net', 'c@example.net']]) {
        const member = await set.accept({ to });
        await happen(set, member, true);
        await project(pool, 'delivery_delayed', [{ id: member.id, dedupe_key: 'Transient 1', recipient: to[0] ?? '' }]);
        assert.deepEqual(await set.deliverOne(member), sent(member.id));
        assert.deepEqual([set.provider.asked, set.provider.calls.length], [1, 1]);
        set.provider.asked = set.provider.calls.length = 0;
        const row = await set.email(member.id);
        assert.deepEqual([row.status, row.provider], ['delivery_delayed', 'postmark']);
        assert.equal(row.provider_message_id, set.provider.took.at(-1)?.messageId);
        assert.deepEqual(await set.timeline(member.id), ['queued', 'sent', 'delivery_delayed']);
        assert.deepEqual(await set.outcomes(member.id), ['sent']);
        const delayed = { id: member.id, state: 'ended', status: 'delivery_delayed', provider: 'postmark' };
        assert.deepEqual(await set.deliverOne(member), delayed);
      }
    });

    test('an email that a report has moved on is not sent again if the search does not show it', async () => {
      const set = make(true);
      const member = await set.accept();
      await happen(set, member, true);
      await project(pool, 'delivered', [{ id: member.id, dedupe_key: 'Delivery 1' }]);
      set.provider.sees = false;
      assert.equal((await set.deliverOne(member)).state, 'again');
      await set.age(member.id, 61);
      assert.deepEqual(await set.deliverOne(member), { id: member.id, state: 'ended', status: 'delivered' });
      assert.deepEqual([set.provider.calls.length, set.provider.asked], [1, 2]);
    });

    test('a report of a provider that cannot be asked ends it', async () => {
      const set = make(false);
      const member = await set.accept();
      await happen(set, member, true);
      await project(pool, 'delivered', [{ id: member.id, dedupe_key: 'Delivery 1' }]);
      assert.deepEqual(await set.deliverOne(member), { id: member.id, state: 'ended', status: 'delivered' });
    });

    test('sends it again without a search, and logs it, when AMBIGUOUS_SEND is retry', async () => {
      const set = make(false);
      const { id, version } = await set.accept();
      await happen(set, { id, version }, true);
      await set.age(id, 721);
      assert.equal((await set.deliverOne({ id, version })).state, 'ended');
      assert.deepEqual(await set.outcomes(id), ['risked', 'sent']);
      assert.equal(
        (await set.attempts(id))[0]?.detail,
        'It is unknown whether the provider accepted it; it is sent again.',
      );
      assert.equal(set.provider.calls.length, 2);
      const lines = set.lines.map((line) => JSON.parse(line) as Record<string, unknown>);
      const { messages, provider, policy } = lines.find(({ level }) => level === 40) ?? {};
      assert.deepEqual([messages, provider, policy], [[id], 'smtp', 'retry']);
    });

    for (const [repeats, times] of [
      [0, undefined],
      [1, 'once'],
      [3, '3 times'],
    ] as const)
      test(`sends an email again at most ${repeats} times when its provider cannot be asked, then fails it with the reason`, async () => {
        const set = make(false, { ambiguousSendMaxRepeats: repeats });
        const member = await set.accept();
        const results = [];
        for (let round = 0; round < 6; round++) {
          if ((await set.email(member.id)).status !== 'queued') break;
          set.provider.acts.push((email, call) => {
            set.provider.take(email, call);
            return LOST;
          });
          if (cause === 'the worker died' && round === 0) await set.die(member, set.provider, CALL, true);
          await set.age(member.id, 3_600);
          results.push(await set.deliverOne(member));
        }
        const { status, error } = await set.email(member.id);
        assert.equal(status, 'failed', JSON.stringify(results));
        assert.match(error ?? '', times === undefined ? /may have accepted it/ : new RegExp(`sent again ${times}`));
        assert.match(error ?? '', times === undefined ? /not sent again/ : /may have been delivered/);
        assert.equal(set.provider.took.length, repeats + 1);
        assert.deepEqual(await set.outcomes(member.id), [...Array<string>(repeats).fill('risked'), 'unknown']);
        assert.deepEqual(await set.timeline(member.id), ['queued', 'failed']);
      });

    test('an email whose recipient is suppressed before it is sent again has failed, and its opens and clicks count', async () => {
      const set = make(false);
      const [to, other] = [`to-${newId('em')}@example.net`, `other-${newId('em')}@example.net`];
      const alone = await set.accept({ to: [to] });
      const both = await set.accept({ to: [to, other] });
      for (const member of [alone, both]) await happen(set, member, true);
      await addSuppressions(pool, [{ id: newId('sup'), org_id: orgId, email: to, origin: 'complaint' }]);
      for (const [member, status] of [
        [alone, 'failed'],
        [both, 'sent'],
      ] as const) {
        await set.age(member.id, 721);
        const result = await set.deliverOne(member);
        assert.equal(result.state === 'ended' && result.status, status);
        assert.deepEqual(await set.timeline(member.id), ['queued', status]);
        const { rows } = await pool.query(`SELECT recipient, status, error FROM email_recipients WHERE email_id = $1`, [
          member.id,
        ]);
        assert.deepEqual(rows, [{ recipient: to, status: 'failed', error: SUPPRESSED_AFTER_CALL_ERROR }]);
        const [tracked] = await findTrackedEmails(pool, [member.id]);
        assert.deepEqual([tracked?.may_be_accepted, tracked?.copies], [true, { [to]: true }]);
      }
      assert.equal((await set.email(alone.id)).error, SUPPRESSED_AFTER_CALL_ERROR);
      assert.deepEqual([await set.outcomes(alone.id), set.provider.took.length], [['risked'], 3]);
    });

    test('an email that its provider does not have is suppressed with its recipient', async () => {
      const set = make(true);
      const to = `to-${newId('em')}@example.net`;
      const member = await set.accept({ to: [to] });
      await happen(set, member, false);
      await addSuppressions(pool, [{ id: newId('sup'), org_id: orgId, email: to, origin: 'complaint' }]);
      assert.equal((await set.deliverOne(member)).state, 'again');
      await set.age(member.id, 61);
      assert.deepEqual(await set.deliverOne(member), { id: member.id, state: 'ended', status: 'suppressed' });
    });

    test('fails it without a search when AMBIGUOUS_SEND is fail', async () => {
      const set = make(false, { ambiguousSend: 'fail' });
      const member = await set.accept();
      await happen(set, member, true);
      await set.age(member.id, 721);
      assert.deepEqual(await set.deliverOne(member), { id: member.id, state: 'ended', status: 'failed' });
      const { error } = await set.email(member.id);
      assert.equal(error, 'The provider may have accepted it, but cannot confirm it; it was not sent again.');
      assert.deepEqual([await set.outcomes(member.id), set.provider.calls.length], [['unknown'], 1]);
      assert.deepEqual(await set.timeline(member.id), ['queued', 'failed']);
    });
  });

describe('a call that may still be in flight', () => {
  test('is handled by AMBIGUOUS_SEND when its provider is removed from the settings', async () => {
    const set = make(true);
    const member = await set.accept();
    await set.die(member, set.provider, CALL, false);
    const other = new ScriptedProvider('smtp', false);
    const later = harness(pool, orgId, [other]);
    await set.age(member.id, 76);
    assert.equal((await later.deliverOne(member)).state, 'ended');
    assert.deepEqual(await set.outcomes(member.id), ['risked', 'sent']);
    assert.deepEqual([set.provider.asked, other.took.length], [0, 1]);
  });

  test('is not repeated for twelve minutes at a provider that cannot be asked', async () => {
    const set = make(false);
    const member = await set.accept();
    await set.die(member, set.provider, CALL, false);
    const first = await set.deliverOne(member);
    assert.ok(first.state === 'again');
    assertRemaining(first.afterMs, 720_000);
    await set.age(member.id, 690);
    const second = await set.deliverOne(member);
    assert.ok(second.state === 'again');
    assertRemaining(second.afterMs, 30_000);
    assert.equal(set.provider.calls.length, 1);
    await set.age(member.id, 30);
    assert.equal((await set.deliverOne(member)).state, 'ended');
    assert.equal(set.provider.calls.length, 2);
  });

  test('is repeated immediately when its worker recorded that no answer came', async () => {
    const set = make(false);
    const member = await set.accept();
    set.provider.acts.push(LOST);
    await set.deliverOne(member);
    assert.equal((await set.deliverOne(member)).state, 'ended');
    assert.deepEqual(await set.outcomes(member.id), ['risked', 'sent']);
  });

  test('is judged for each email of its group', async () => {
    const set = make(false);
    const [young, old] = await set.acceptMany(2);
    assert.ok(young && old);
    for (const member of [young, old]) await set.die(member, set.provider, CALL, false);
    await set.age(old.id, 721);
    const results = new Map((await set.deliver(young, old)).map((result) => [result.id, result.state]));
    assert.deepEqual([results.get(young.id), results.get(old.id)], ['again', 'ended']);
    assert.equal(set.provider.took.length, 1);
  });
});

describe('an ambiguous call of a group', () => {
  test('is searched once for each call, and reconciled for each email', async () => {
    const set = make(true);
    const [found, notFound, confirmed, fresh, other] = await set.acceptMany(5);
    assert.ok(found && notFound && confirmed && fresh && other);
    await set.die(found, set.provider, CALL, true);
    await set.die(notFound, set.provider, CALL, false);
    await set.die(confirmed, set.provider, CALL, false);
    await set.die(other, set.provider, 'call_2', true);
    await pool.query(`UPDATE attempts SET denied_at = now() - interval '61 s' WHERE message_id = $1`, [confirmed.id]);

    const results = await set.deliver(found, notFound, confirmed, fresh, other);
    assert.equal(results.length, 5);
    const states = new Map(results.map((result) => [result.id, result.state]));
    assert.deepEqual(
      [found, notFound, confirmed, fresh, other].map(({ id }) => states.get(id)),
      ['ended', 'again', 'ended', 'ended', 'ended'],
    );
    assert.equal(set.provider.asked, 2);
    const last = set.provider.calls.slice(4);
    assert.deepEqual(last.flatMap(({ ids }) => ids).sort(), [confirmed.id, fresh.id].sort());
    assert.deepEqual(await Promise.all([found, notFound, confirmed, fresh].map(({ id }) => set.outcomes(id))), [
      ['sent'],
      [null],
      ['lost', 'sent'],
      ['sent'],
    ]);
  });
});

describe('while an ambiguous call is looked up', () => {
  test('the other emails of the group are sent, because their claims expire', async () => {
    const set = make(true);
    const [ambiguous, fresh] = await set.acceptMany(2);
    assert.ok(ambiguous && fresh);
    await set.die(ambiguous, set.provider, CALL, true);
    const { find } = set.provider;
    const events: string[] = [];
    const sending = new EventEmitter();
    const called = once(sending, 'call');
    set.provider.find = async (call) => {
      await Promise.race([called, sleep(5_000, undefined, { ref: false })]);
      events.push('found');
      return find?.(call) ?? new Map();
    };
    set.provider.acts.push((email, call) => {
      events.push('sent');
      sending.emit('call');
      return set.provider.take(email, call);
    });
    const results = await set.deliver(ambiguous, fresh);
    assert.deepEqual(events, ['sent', 'found']);
    assert.deepEqual(
      results.map(({ state }) => state),
      ['ended', 'ended'],
    );
  });

  test('a failure of the reconciliation is thrown after the call of the other emails was recorded', async () => {
    const set = make(true);
    const [ambiguous, fresh] = await set.acceptMany(2);
    assert.ok(ambiguous && fresh);
    await set.die(ambiguous, set.provider, CALL, true);
    // Postgres rejects NUL.
    set.provider.find = () => Promise.resolve(new Map([[ambiguous.id, '\0']]));
    set.provider.acts.push(async (email, call) => {
      await sleep(500);
      return set.provider.take(email, call);
    });
    await assert.rejects(set.deliver(ambiguous, fresh));
    assert.deepEqual([await set.outcomes(fresh.id), (await set.email(fresh.id)).status], [['sent'], 'sent']);
    assert.deepEqual(await set.outcomes(ambiguous.id), [null]);
  });
});
