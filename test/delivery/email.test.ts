import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Info } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { type Delivery, makeEmailActivities } from '../../activities/index.ts';
import type { AttemptLimit } from '../../activities/temporal.ts';
import type { Member } from '../../src/delivery/contract.ts';
import { EMAIL_STATUSES } from '../../src/domain/email/email.ts';
import type { SendOutcome } from '../../src/domain/email/retry.ts';
import { force, inMs } from '../store/mail.ts';
import { organizationFixture } from '../support/organization.ts';
import { harnessWithProvider } from './harness.ts';

const { pool, orgId } = await organizationFixture();

const POLICY = { initialInterval: 2_000, backoffCoefficient: 2, maximumInterval: 1_800_000, maximumAttempts: 16 };

function make(info: Partial<Info> = {}, canBeAsked = true, settings: Parameters<typeof harnessWithProvider>[2] = {}) {
  const set = harnessWithProvider(pool, orgId, settings, canBeAsked ? 'postmark' : 'smtp');
  const activities = makeEmailActivities(set.deps);
  const env = new MockActivityEnvironment({ attempt: 1, retryPolicy: POLICY, ...info });
  return {
    ...set,
    deliverEmail: (member: Member & AttemptLimit): Promise<Delivery> => env.run(() => activities.deliverEmail(member)),
    giveUpEmail: (id: string, maximumAttempts = 3): Promise<string> =>
      env.run(() => activities.giveUpEmail({ id, maximumAttempts })),
    cancelEmail: (id: string): Promise<string> => env.run(() => activities.cancelEmail({ id })),
  };
}

describe('delivering an email', () => {
  test('returns the status, or that the email must wait', async () => {
    const { accept, deliverEmail } = make();
    const [now, later] = [await accept(), await accept({ scheduled_at: inMs(60_000) })];
    const sent = await deliverEmail(now);
    assert.deepEqual(sent, { id: now.id, state: 'ended', status: 'sent', provider: 'postmark' });
    assert.equal((await deliverEmail(later)).state, 'waiting');
  });

  /**
   * The failure of an activity attempt in which the email was not taken.
   * @param attempts those recorded after it
   * @param recorded the outcome of those before it
   */
  async function failure(
    outcome: SendOutcome,
    attempt: number,
    attempts = attempt,
    recorded: 'again' | 'account' = 'again',
  ): Promise<ApplicationFailure> {
    const { accept, deliverEmail, provider } = make({ attempt });
    const member = await accept();
    await pool.query(
      `INSERT INTO attempts (message_id, n, call, provider, outcome, ended_at)
       SELECT $1, n, 'call_' || n, 'postmark', $3, now() FROM generate_series(1, $2 - 1) AS n`,
      [member.id, attempts, recorded],
    );
    provider.acts.push(outcome);
    const error = await deliverEmail(member).then(
      () => assert.fail('it did not fail'),
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof ApplicationFailure);
    return error;
  }

  test('throws NotAccepted with a reason without addresses when it should be retried', async () => {
    const error = await failure({ kind: 'busy', detail: '450 <someone@example.net> later' }, 1);
    assert.deepEqual(
      [error.type, error.message, error.category, error.nonRetryable],
      ['NotAccepted', '450 <s***@example.net> later', 'BENIGN', false],
    );
  });

  test('waits as long as the provider asks, and at least as long as the policy with jitter', async (t) => {
    const random = t.mock.method(Math, 'random', () => 0);
    for (const [afterMs, attempt, delay, latest] of [
      [17_000, 1, 17_000, 17_000],
      [3_600_000, 1, 3_600_000, 3_600_000],
      [undefined, 1, 2_000, 2_100],
      [0, 1, 2_000, 2_100],
      [1_000, 1, 2_000, 2_100],
      [1_000, 5, 32_000, 33_600],
      [1_000, 16, 1_800_000, 1_890_000],
      [0.4, 1, 2_000, 2_100],
    ] as const) {
      const busy = { kind: 'busy', detail: '429', ...(afterMs !== undefined && { afterMs }) } as const;
      for (const [chance, expected] of [
        [0, delay],
        [0.5, latest],
      ] as const) {
        random.mock.mockImplementation(() => chance);
        const error = await failure(busy, attempt);
        assert.equal(error.nextRetryDelay, expected, `${afterMs} ms at attempt ${attempt}`);
      }
    }
  });

  test('does not lengthen the delay of an email for attempts at which it was postponed', async () => {
    const error = await failure({ kind: 'busy', detail: '450' }, 14, 1);
    const delayMs = Number(error.nextRetryDelay);
    assert.ok(delayMs >= 2_000 && delayMs <= 2_200, `${delayMs} ms`);
  });

  test('does not lengthen the delay of an email for refusals of our account', async (t) => {
    t.after(() => pool.query('DELETE FROM provider_pauses'));
    const busy = Number((await failure({ kind: 'busy', detail: '450' }, 14, 14, 'account')).nextRetryDelay);
    assert.ok(busy >= 2_000 && busy <= 2_200, `${busy} ms`);
    assert.equal((await failure({ kind: 'account', detail: '401' }, 14, 14, 'account')).nextRetryDelay, 60_000);
  });

  test('lets an email wait for SEND_INITIAL_INTERVAL without being overdue', async () => {
    const { deps, accept, provider } = make();
    const member = await accept();
    provider.acts.push({ kind: 'busy', detail: '429' });
    await makeEmailActivities({ ...deps, initialIntervalMs: 7_200_000 }).attemptEmail(member);
    const { rows } = await pool.query(
      `SELECT look_at > now() + interval '2 hours' AS is_later FROM emails WHERE id = $1`,
      [member.id],
    );
    assert.deepEqual(rows, [{ is_later: true }]);
  });

  test('rethrows the error of an unreachable database', async () => {
    const { deps, accept } = make();
    const member = await accept();
    const broken = makeEmailActivities({
      ...deps,
      pool: { connect: () => Promise.reject(new Error('away')) } as never,
    });
    const run = new MockActivityEnvironment().run(() => broken.deliverEmail(member));
    await assert.rejects(run, (error: Error) => !(error instanceof ApplicationFailure) && error.message === 'away');
  });

  test('sends heartbeats during the provider call', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const { deps, accept, provider } = make();
    const env = new MockActivityEnvironment({ attempt: 1 });
    let beats = 0;
    env.on('heartbeat', () => beats++);
    provider.acts.push((email, call) => {
      t.mock.timers.tick(15_000);
      return provider.take(email, call);
    });
    const member = await accept();
    await env.run(() => makeEmailActivities(deps).deliverEmail(member));
    assert.equal(beats, 3);
    t.mock.timers.tick(60_000);
    assert.equal(beats, 3);
  });
});

describe('giving an email up', () => {
  test('fails it with the last answer when its attempts are used up', async () => {
    const { accept, deliverOne, provider, giveUpEmail, email, timeline } = make();
    const member = await accept();
    for (const detail of ['first', 'second', 'third']) {
      provider.acts.push({ kind: 'busy', detail: `Postmark answered 503: ${detail}.` });
      assert.equal(await giveUpEmail(member.id), 'queued');
      await deliverOne(member);
    }
    assert.equal(await giveUpEmail(member.id), 'failed');
    const { status, error } = await email(member.id);
    assert.deepEqual([status, error], ['failed', 'Postmark answered 503: third. Given up after 3 attempts.']);
    assert.deepEqual(await timeline(member.id), ['queued', 'failed']);
    assert.equal(await giveUpEmail(member.id), 'failed');
    assert.deepEqual(await timeline(member.id), ['queued', 'failed']);
  });

  test('fails it in the first attempt of its workflow if that reaches the limit', async () => {
    const { accept, deliverOne, provider, deps, timeline } = make();
    const member = await accept();
    const busy = { kind: 'busy', detail: 'Busy.' } as const;
    provider.acts.push(busy, busy, busy);
    const attempt = () => makeEmailActivities(deps).attemptEmail({ ...member, maximumAttempts: 3 });
    await deliverOne(member);
    assert.equal((await attempt()).state, 'again');
    assert.deepEqual(await attempt(), { id: member.id, state: 'ended', status: 'failed' });
    assert.deepEqual(await timeline(member.id), ['queued', 'failed']);
  });

  test('does not fail an email that never reached a provider', async () => {
    const { accept, giveUpEmail, email } = make();
    const member = await accept();
    assert.equal(await giveUpEmail(member.id, 1), 'queued');
    assert.equal((await email(member.id)).status, 'queued');
  });

  test('logs nothing about a scheduled email whose claim was postponed', async () => {
    const { accept, giveUpEmail, lines } = make();
    const member = await accept({ scheduled_at: inMs(60_000) });
    assert.equal(await giveUpEmail(member.id, 1), 'scheduled');
    assert.deepEqual(lines, []);
  });

  test('does not fail an ambiguous email before its provider was asked maximumAttempts times', async () => {
    const { accept, die, deliverOne, provider, giveUpEmail, email } = make();
    const member = await accept();
    provider.find = () => Promise.reject(new Error('503'));
    for (let n = 0; n < 2; n++) provider.acts.push({ kind: 'busy', detail: 'later' });
    for (let n = 0; n < 2; n++) await deliverOne(member);
    await die(member, provider, 'call_1', true);
    for (let checks = 0; checks < 3; checks++) {
      assert.equal(await giveUpEmail(member.id), 'queued');
      await deliverOne(member);
    }
    assert.equal(await giveUpEmail(member.id), 'failed');
    assert.equal(
      (await email(member.id)).error,
      'The provider did not answer. Given up after 3 look-ups at the provider. The provider may have accepted it.',
    );
  });

  test('ends a round with the last look-up that may fail, and names the look-ups', async () => {
    const { accept, deliverOne, deliverEmail, provider, giveUpEmail, email, attempts } = make();
    const member = await accept();
    provider.find = () => Promise.reject(new Error('503'));
    provider.acts.push({ kind: 'unknown', detail: 'No answer.' });
    await deliverOne(member);
    const lookUp = () => deliverEmail({ ...member, maximumAttempts: 3 }).catch((error: unknown) => error);
    const ends: unknown[] = [];
    for (let n = 0; n < 3; n++) {
      assert.equal(await giveUpEmail(member.id), 'queued');
      const error = await lookUp();
      assert.ok(error instanceof ApplicationFailure);
      ends.push(error.nonRetryable);
    }
    assert.deepEqual(ends, [false, false, true]);

    // Its organization is suspended: it is not given up yet, and the next look-ups wait.
    await pool.query('UPDATE organizations SET suspended_at = now() WHERE id = $1', [orgId]);
    assert.equal(await giveUpEmail(member.id), 'queued');
    const error = await lookUp();
    assert.ok(error instanceof ApplicationFailure && error.nonRetryable === false);
    await pool.query('UPDATE organizations SET suspended_at = NULL WHERE id = $1', [orgId]);

    assert.equal(await giveUpEmail(member.id), 'failed');
    assert.equal((await attempts(member.id)).length, 1);
    assert.match((await email(member.id)).error ?? '', /^No answer\. Given up after 4 look-ups at the provider\. /);
  });

  test('sends an email that Postmark never has once more than its limit at most, although rounds end before the last attempt is checked', async () => {
    const { accept, age, deliverEmail, provider, giveUpEmail, email, attempts } = make();
    const member = await accept();
    let rounds = 0;
    for (; rounds < 10 && (await email(member.id)).status === 'queued'; rounds++) {
      // Asked, asked again and sent again, twice: a round of four activity attempts.
      for (let attempt = rounds === 0 ? 3 : 0; attempt < 4; attempt++) {
        provider.acts.splice(0, 1, { kind: 'unknown', detail: 'Postmark answered 500.' });
        await age(member.id, 61);
        const error: unknown = await deliverEmail({ ...member, maximumAttempts: 4 }).catch((reason: unknown) => reason);
        assert.ok(error instanceof ApplicationFailure);
        if (error.nonRetryable) break;
      }
      await giveUpEmail(member.id, 4);
    }
    const { status, error } = await email(member.id);
    assert.deepEqual([status, (await attempts(member.id)).length], ['failed', 5], `after ${rounds} rounds`);
    assert.match(error ?? '', /Given up after 5 attempts/);
  });

  for (const [name, canBeAsked] of [
    ['fails it when its last ambiguous attempt was asked about and is not found', true],
    ['counts ambiguous attempts at a provider that cannot be asked', false],
  ] as const)
    test(name, async () => {
      const set = make({}, canBeAsked, { ambiguousSendMaxRepeats: 10 });
      const { provider, giveUpEmail } = set;
      const member = await set.accept();
      for (let n = 1; n <= 3; n++) {
        assert.equal(await giveUpEmail(member.id), 'queued', `after ${n - 1} attempts`);
        provider.acts.push({ kind: 'unknown', detail: 'No answer.' });
        // Its first "not found" was long ago: the next one confirms it, and the email is sent again.
        await set.age(member.id, 61);
        await set.deliverOne(member);
        if (canBeAsked) {
          assert.equal(await giveUpEmail(member.id), 'queued', `attempt ${n} was not asked about`);
          await set.deliverOne(member);
        }
      }
      assert.equal(await giveUpEmail(member.id), 'failed');
      assert.match((await set.email(member.id)).error ?? '', /^No answer\. Given up after 3 attempts\. .*may have/);
    });

  test('changes no email in another status, and returns that status', async () => {
    const { accept, die, provider, age, giveUpEmail, email, timeline } = make();
    for (const status of EMAIL_STATUSES.filter((each) => each !== 'queued')) {
      const member = await accept();
      await die(member, provider, 'call_1', false);
      await age(member.id, 999);
      await force(pool, member.id, status);
      const before = await email(member.id);
      assert.equal(await giveUpEmail(member.id, 1), status);
      assert.deepEqual([await email(member.id), await timeline(member.id)], [before, ['queued']]);
    }
    assert.equal(await giveUpEmail('em_none'), 'canceled');
  });
});

describe('canceling an email', () => {
  test('cancels a scheduled email', async () => {
    const { accept, cancelEmail, email, timeline, deliverOne, provider } = make();
    const member = await accept({ scheduled_at: inMs(60_000) });
    assert.equal(await cancelEmail(member.id), 'canceled');
    assert.equal(await cancelEmail(member.id), 'canceled');
    assert.equal((await email(member.id)).status, 'canceled');
    assert.deepEqual(await timeline(member.id), ['scheduled', 'canceled']);
    await deliverOne(member);
    assert.deepEqual(provider.calls, []);
  });

  test('changes no email in another status, and returns that status', async () => {
    const { accept, cancelEmail, email, timeline } = make();
    for (const status of EMAIL_STATUSES.filter((each) => each !== 'scheduled' && each !== 'canceled')) {
      const member = await accept();
      await force(pool, member.id, status);
      const before = await email(member.id);
      assert.equal(await cancelEmail(member.id), status);
      assert.deepEqual([await email(member.id), await timeline(member.id)], [before, ['queued']]);
    }
    assert.equal(await cancelEmail('em_none'), 'canceled');
  });
});
