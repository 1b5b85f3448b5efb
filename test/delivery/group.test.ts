import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Info } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { type GroupDelivery, makeGroupActivities } from '../../activities/index.ts';
import type { AttemptLimit } from '../../activities/temporal.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import type { Member } from '../../src/delivery/contract.ts';
import { newId } from '../../src/lib/ids.ts';
import type { SendOutcome } from '../../src/domain/email/retry.ts';
import { groupOutboxRows, lockEmailRows } from '../../src/store/outbox/outbox.ts';
import type { NewEmail } from '../../src/store/emails/accept.ts';
import { projectReschedule } from '../../src/projection/emails.ts';
import { inMs, organization } from '../store/mail.ts';
import { organizationFixture } from '../support/organization.ts';
import { assertRemaining, CLOCK_STEP_MS } from '../support/remaining.ts';
import { type Act, harness, ScriptedProvider } from './harness.ts';

const { pool, orgId } = await organizationFixture();

const POLICY = { initialInterval: 2_000, backoffCoefficient: 2, maximumInterval: 1_800_000, maximumAttempts: 16 };
const BUSY: SendOutcome = { kind: 'busy', detail: 'busy now' };

/** A stored group of `n` emails. */
async function group(
  n: number,
  fields: Partial<NewEmail> | ((i: number) => Partial<NewEmail>) = {},
  info: Partial<Info> = {},
) {
  const provider = new ScriptedProvider();
  const set = harness(pool, orgId, [provider]);
  const activities = makeGroupActivities(set.deps);
  const env = new MockActivityEnvironment({ attempt: 1, retryPolicy: POLICY, ...info });
  const id = newId('grp');
  const members = await set.acceptMany(n, typeof fields === 'function' ? fields : () => fields);
  const ids = new Set(members.map((member) => member.id));
  const rows = (await lockEmailRows(pool, 10_000)).filter((row) => ids.has(row.message_id));
  const rowsOfGroup = rows.map((row) => ({ outboxId: row.id, id: row.message_id, version: row.version }));
  await groupOutboxRows(pool, [{ id, isLate: false, members: rowsOfGroup }]);
  const statuses = async () => Promise.all(members.map(async (member) => (await set.email(member.id)).status));
  return {
    ...set,
    id,
    members,
    provider,
    statuses,
    deliver: (some: readonly Member[] = members, limit: AttemptLimit = {}): Promise<GroupDelivery> =>
      env.run(() => activities.deliverGroup({ id, members: some, ...limit })),
    giveUp: (maximumAttempts: number): Promise<void> =>
      env.run(() => activities.giveUpGroup({ id, members, maximumAttempts })),
    cancel: (): Promise<void> => env.run(() => activities.cancelGroup({ id, members })),
    /** Detached emails, with their wait in seconds. */
    left: async () => {
      const { rows: found } = await pool.query<{ id: string; wait: number }>(
        `SELECT message_id AS id, round(extract(epoch FROM retry_at - now()))::int AS wait
         FROM outbox WHERE action IN ('start', 'leave') AND message_id = ANY ($1) ORDER BY id`,
        [[...ids]],
      );
      return found;
    },
  };
}

async function failure(delivery: Promise<unknown>): Promise<ApplicationFailure> {
  const error = await delivery.then(
    () => assert.fail('it did not fail'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ApplicationFailure, String(error));
  return error;
}

describe('delivering a group', () => {
  test('sends all of them in one call and counts them', async () => {
    const { deliver, provider, members, statuses } = await group(30);
    assert.deepEqual(await deliver(), { counts: { sent: 30 }, providers: ['postmark'] });
    assert.deepEqual(provider.callSizes, [members.length]);
    assert.deepEqual(new Set(await statuses()), new Set(['sent']));
  });

  test('composes no signals, which the stop signal of the worker would keep', async (t) => {
    const any = t.mock.method(AbortSignal, 'any');
    const { deliver } = await group(2);
    await deliver();
    assert.equal(any.mock.callCount(), 0);
  });

  test('makes calls of the provider’s size', async () => {
    const { deliver, provider } = await group(25);
    provider.callSize = 10;
    assert.deepEqual((await deliver()).counts, { sent: 25 });
    assert.deepEqual(provider.callSizes, [10, 10, 5]);
    assert.equal(new Set(provider.calls.map(({ call }) => call)).size, 3);
  });

  test('detaches the few that were not taken for the time of the policy or the provider', async () => {
    const { deliver, provider, members, left, email } = await group(5, {}, { attempt: 2 });
    provider.acts.push(...Array.from({ length: 5 }, () => BUSY));
    await failure(deliver());
    provider.acts.push({ kind: 'sent', messageId: 'a' }, BUSY, { ...BUSY, afterMs: 90_000 });
    assert.deepEqual(await deliver(), { counts: { detached: 2, sent: 3 }, providers: ['postmark'] });
    assert.deepEqual(await left(), [
      { id: members[1]?.id, wait: 4 },
      { id: members[2]?.id, wait: 90 },
    ]);
    assert.equal((await email(members[1]?.id ?? '')).status, 'queued');
  });

  test('does not deliver detached emails', async () => {
    const { deliver, provider, members } = await group(3);
    provider.acts.push(BUSY);
    await deliver();
    const calls = provider.calls.length;
    assert.deepEqual((await deliver()).counts, { queued: 1, sent: 2 });
    assert.equal(provider.calls.length, calls);
    assert.ok(!provider.took.some(({ id }) => id === members[0]?.id));
  });

  test('retries all together when none was taken', async () => {
    const { deliver, provider, members, left } = await group(3);
    provider.acts.push(BUSY, { ...BUSY, afterMs: 7_000 }, BUSY);
    const error = await failure(deliver());
    assert.equal(error.type, 'NotAccepted');
    assert.equal(error.message, '3 of 3 emails were not accepted. busy now');
    assert.equal(error.nextRetryDelay, 7_000);
    assert.deepEqual(await left(), []);
    assert.deepEqual((await deliver()).counts, { sent: members.length });
  });

  test('ends the round when the last allowed attempts of all that are left are ambiguous', async () => {
    const { deliver, provider, members } = await group(2);
    const refusals: (boolean | null | undefined)[] = [];
    for (const outcome of [BUSY, { kind: 'unknown', detail: 'No answer.' }] as const) {
      provider.acts.push(outcome, outcome);
      refusals.push((await failure(deliver(members, { maximumAttempts: 2 }))).nonRetryable);
    }
    assert.deepEqual(refusals, [false, true]);
  });

  test('fails all members when their attempts are used up', async () => {
    const { deliver, provider } = await group(2);
    provider.acts.push(BUSY, BUSY);
    assert.deepEqual((await deliver(undefined, { maximumAttempts: 1 })).counts, { failed: 2 });
  });

  test('fails a member at the limit instead of detaching it', async () => {
    const { deliver, provider, members, email, left, outcomes } = await group(5);
    provider.acts.push(...Array.from({ length: 5 }, () => BUSY));
    await failure(deliver(members, { maximumAttempts: 2 }));
    provider.acts.push(BUSY);
    assert.deepEqual((await deliver(members, { maximumAttempts: 2 })).counts, { failed: 1, sent: 4 });
    assert.deepEqual(await left(), []);
    const [{ id }] = members as [Member];
    assert.equal((await email(id)).error, 'busy now Given up after 2 attempts.');
    assert.deepEqual(await outcomes(id), ['again', 'again']);
  });

  test('attempts no member beyond the limit while another one waits', async () => {
    const { deliver, provider, members, statuses, outcomes } = await group(30);
    const other = await createOrganization(pool, 'Suspended');
    await pool.query('UPDATE organizations SET suspended_at = now() WHERE id = $1', [other.id]);
    const suspended = members.slice(5).map(({ id }) => id);
    await pool.query('UPDATE emails SET org_id = $1 WHERE id = ANY ($2)', [other.id, suspended]);
    for (let n = 0; n < 3; n++) {
      provider.acts.splice(0, Infinity, ...Array.from({ length: 5 }, () => BUSY));
      assert.equal((await failure(deliver(members, { maximumAttempts: 2 }))).nonRetryable, false);
    }
    assert.deepEqual(await outcomes(members[0]?.id ?? ''), ['again', 'again']);
    assert.deepEqual(await statuses(), [...Array<string>(5).fill('failed'), ...Array<string>(25).fill('queued')]);
  });

  test('retries many together although others were taken', async () => {
    const { deliver, provider, left } = await group(30);
    provider.acts.push(...Array.from({ length: 21 }, () => BUSY));
    assert.match((await failure(deliver())).message, /^21 of 30 /);
    assert.deepEqual(await left(), []);
    assert.deepEqual((await deliver()).counts, { sent: 30 });
  });

  test('waits for members that were attempted, not for those of a suspended organization', async () => {
    const { deliver, provider, members } = await group(30);
    const suspended = members.slice(0, 25).map(({ id }) => id);
    const other = await createOrganization(pool, 'Suspended');
    await pool.query('UPDATE organizations SET suspended_at = now() WHERE id = $1', [other.id]);
    await pool.query('UPDATE emails SET org_id = $1 WHERE id = ANY ($2)', [other.id, suspended]);
    provider.acts.push(...Array.from({ length: 5 }, () => ({ ...BUSY, afterMs: 3_000 })));
    assert.equal((await failure(deliver())).nextRetryDelay, 3_000);
    provider.acts.push(...Array.from({ length: 5 }, (): SendOutcome => ({ kind: 'sent', messageId: 'a' })));
    assert.ok(Number((await failure(deliver())).nextRetryDelay) >= 5_000);
  });

  test('detaches all that the provider takes only alone', async () => {
    const { deliver, provider, left } = await group(30);
    provider.acts.push(...Array.from({ length: 30 }, () => ({ ...BUSY, alone: true as const })));
    assert.deepEqual((await deliver()).counts, { detached: 30 });
    assert.equal((await left()).length, 30);
  });

  test('makes no further call when the provider took none', async () => {
    const { deliver, provider, outcomes, members } = await group(30);
    provider.callSize = 10;
    provider.acts.push(...Array.from({ length: 10 }, () => BUSY));
    assert.match((await failure(deliver())).message, /^30 of 30 /);
    assert.equal(provider.calls.length, 1);
    assert.deepEqual(await outcomes(members[29]?.id ?? ''), []);
  });

  test('does not count the refusals of others as attempts of members that were not attempted', async () => {
    const { deliver, provider, statuses } = await group(40);
    provider.callSize = 10;
    provider.acts.push(...Array.from({ length: 10 }, () => BUSY));
    const error = await failure(deliver(undefined, { maximumAttempts: 1 }));
    assert.match(error.message, /^30 of 40 /);
    assert.equal(error.nonRetryable, false);
    assert.deepEqual(await statuses(), [...Array<string>(10).fill('failed'), ...Array<string>(30).fill('queued')]);
  });

  test('sends heartbeats until its results are stored', async (t) => {
    const [started, stopped] = [t.mock.method(globalThis, 'setInterval'), t.mock.method(globalThis, 'clearInterval')];
    const { deliver, provider, deps } = await group(2);
    provider.acts.push(BUSY);
    let isStopped: boolean | undefined;
    t.mock.method(deps.log, 'info', (_fields: object, message: string) => {
      if (message !== 'group attempted') return;
      const heartbeats = started.mock.calls.find(({ arguments: [, ms] }) => ms === 5_000)?.result;
      isStopped = !heartbeats || stopped.mock.calls.some(({ arguments: [timer] }) => timer === heartbeats);
    });
    await deliver();
    assert.equal(isStopped, false);
  });

  test('attempts the emails of an organization although the provider took none of another', async () => {
    const { deliver, provider, members, statuses } = await group(40);
    provider.callSize = 10;
    const other = await organization(pool, 'refused.example');
    const refused = members.slice(0, 30).map(({ id }) => id);
    await pool.query(`UPDATE emails SET org_id = $1, "from" = 'a@refused.example' WHERE id = ANY ($2)`, [
      other,
      refused,
    ]);
    const act: Act = (email, call) => (email.from.domain === 'refused.example' ? BUSY : provider.take(email, call));
    provider.acts.push(...Array.from({ length: 40 }, () => act));
    assert.match((await failure(deliver())).message, /^30 of 40 /);
    // Organizations take turns, so the first call has five emails of each.
    assert.deepEqual(provider.callSizes, [10, 5]);
    assert.deepEqual((await statuses()).slice(30), Array(10).fill('sent'));
  });

  const AMBIGUOUS = [
    {
      until: 'it is certainly over',
      reason: 'An earlier call may still be under way.',
      // It cannot be asked, like SMTP.
      canFind: false,
      minMs: 60_001,
      maxMs: 75_000,
    },
    {
      until: 'the provider is asked once more',
      reason: 'The provider may not have it; it is asked once more.',
      canFind: true,
      minMs: 45_000,
      maxMs: 60_000,
    },
  ];
  for (const { until, reason, canFind, minMs, maxMs } of AMBIGUOUS)
    for (const ambiguous of [10, 25])
      test(`sends the others while an ambiguous call for ${ambiguous} of 30 waits until ${until}`, async () => {
        const { deliver, provider, members, die, left, outcomes } = await group(30);
        provider.callSize = ambiguous;
        if (!canFind) delete provider.find;
        for (const member of members.slice(0, ambiguous)) await die(member, provider, 'call_1', false);
        provider.calls.length = 0;
        let waitMs: number;
        if (ambiguous === 10) {
          assert.deepEqual((await deliver()).counts, { detached: 10, sent: 20 });
          waitMs = Math.min(...(await left()).map(({ wait }) => wait * 1_000));
        } else {
          const error = await failure(deliver());
          assert.equal(error.message, `25 of 30 emails were not accepted. ${reason}`);
          waitMs = Number(error.nextRetryDelay);
        }
        assert.ok(waitMs >= minMs && waitMs <= maxMs + CLOCK_STEP_MS, `${waitMs} ms`);
        assert.deepEqual(
          provider.calls.flatMap(({ ids }) => ids).sort(),
          members
            .slice(ambiguous)
            .map(({ id }) => id)
            .sort(),
        );
        assert.deepEqual(await outcomes(members[0]?.id ?? ''), [null]);
      });

  test('a permanent refusal ends that email only', async () => {
    const { deliver, provider, members, email } = await group(3);
    provider.acts.push({ kind: 'sent', messageId: 'a' }, { kind: 'rejected', detail: 'Not this one.' });
    assert.deepEqual((await deliver()).counts, { sent: 2, rejected: 1 });
    assert.equal((await email(members[1]?.id ?? '')).error, 'Not this one.');
  });

  test('skips rescheduled and canceled emails, and returns those that are not due yet', async () => {
    const { deliver, members, provider, email } = await group(4, { scheduled_at: inMs(60_000) });
    const [moved, canceled] = members.map((member) => member.id) as [string, string];
    await projectReschedule(pool, orgId, moved, inMs(120_000));
    await pool.query(`UPDATE emails SET status = 'canceled' WHERE id = $1`, [canceled]);
    const { counts, early } = await deliver();
    assert.deepEqual(counts, { scheduled: 1, canceled: 1 });
    assert.deepEqual(early?.members, members.slice(2));
    assertRemaining(early.inMs, 60_000);
    assert.equal(provider.calls.length, 0);
    assert.equal((await email(moved)).status, 'scheduled');
  });

  test('returns the version of Postgres for a version that is ahead', async () => {
    const { deliver, members } = await group(2, { scheduled_at: inMs(60_000) });
    const { early } = await deliver(members.map((member) => ({ ...member, version: 7 })));
    assert.deepEqual(early?.members, members);
  });
});

describe('ending a group', () => {
  test('giving up fails only emails without attempts left', async () => {
    const { deliver, giveUp, provider, members, statuses, email } = await group(3);
    provider.acts.push(BUSY, BUSY, BUSY);
    await failure(deliver());
    await giveUp(2);
    assert.deepEqual(await statuses(), ['queued', 'queued', 'queued']);
    await giveUp(1);
    assert.deepEqual(await statuses(), ['failed', 'failed', 'failed']);
    assert.equal((await email(members[0]?.id ?? '')).error, 'busy now Given up after 1 attempt.');
  });

  test('a cancellation cancels scheduled members that are not detached', async () => {
    const { cancel, members, statuses } = await group(3, { scheduled_at: inMs(60_000) });
    await projectReschedule(pool, orgId, members[0]?.id ?? '', inMs(120_000));
    await cancel();
    assert.deepEqual(await statuses(), ['scheduled', 'canceled', 'canceled']);
  });
});
