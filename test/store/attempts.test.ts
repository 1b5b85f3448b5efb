import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type AttemptOutcome,
  beginAttempts,
  endAttempts,
  lastAttempts,
  lockEmails,
  recordLookups,
} from '../../src/store/emails/attempts.ts';
import { transaction } from '../../src/store/postgres/pool.ts';
import { organizationFixture } from '../support/organization.ts';
import { assertRemaining } from '../support/remaining.ts';
import { accept, acceptOne, inMs, newEmail } from './mail.ts';

let count = 0;
const attempt = (fields: object = {}) => ({
  message_id: `em_${++count}`,
  n: 1,
  call: 'call_1',
  provider: 'postmark',
  ...fields,
});

const { pool, orgId } = await organizationFixture();

describe('attempts', () => {
  const last = async (id: string) => (await lastAttempts(pool, [id]))[0];

  test('begin without an outcome, with an age by the database’s clock', async () => {
    const begun = attempt();
    await beginAttempts(pool, [begun]);
    const { ageMs, startedAtMs, ...rest } = (await last(begun.message_id)) ?? { ageMs: NaN, startedAtMs: NaN };
    assert.deepEqual(rest, {
      ...begun,
      failures: 1,
      outcome: null,
      detail: null,
      code: null,
      provider_message_id: null,
      changes: null,
      checks: 0,
      endedAtMs: null,
      notFoundForMs: null,
      accountRefusedForMs: null,
      mayBeDelivered: false,
      worker: null,
      handedOver: null,
    });
    assert.ok(ageMs >= 0 && ageMs < 60_000);
    assert.ok(Math.abs(Date.now() - ageMs - startedAtMs) < 60_000);
    await pool.query(`UPDATE attempts SET started_at = started_at - interval '90 s' WHERE message_id = $1`, [
      begun.message_id,
    ]);
    const older = (await last(begun.message_id))?.ageMs ?? NaN;
    assert.ok(older >= 90_000 && older < 150_000);
  });

  test('lastAttempts returns the last attempt of each message', async () => {
    const [one, two, none] = [attempt(), attempt(), attempt()];
    await beginAttempts(pool, [one, two, { ...one, n: 2, call: 'call_2' }, { ...one, n: 10, call: 'call_3' }]);
    const attempts = await lastAttempts(pool, [two.message_id, none.message_id, one.message_id]);
    assert.deepEqual(
      attempts.map(({ message_id, n, call }) => [message_id, n, call]),
      [
        [one.message_id, 10, 'call_3'],
        [two.message_id, 1, 'call_1'],
      ],
    );
  });

  for (const [outcomes, failures, isRefused] of [
    [['again', 'account', 'again'], 2, true],
    [['account', 'account', 'sent', 'again'], 1, false],
    [['account', 'refused', 'account', 'lost'], 1, true],
  ] as const) {
    test(`after ${outcomes.join(', ')} there are ${failures} failures`, async () => {
      const { message_id } = attempt();
      const attempts = outcomes.map((outcome, index) => ({
        ...attempt({ message_id, n: index + 1 }),
        outcome,
        detail: null,
      }));
      await beginAttempts(pool, attempts);
      await endAttempts(pool, attempts);
      const { failures: counted, accountRefusedForMs } = (await last(message_id)) ?? {};
      assert.deepEqual([counted, accountRefusedForMs !== null], [failures, isRefused]);
    });
  }

  const OUTCOMES: AttemptOutcome[] = ['sent', 'refused', 'again', 'unknown', 'lost', 'risked', 'given_up'];
  test('an outcome is final, except that unknown is replaced by any outcome and any outcome by sent', async () => {
    const pairs = OUTCOMES.flatMap((first) => OUTCOMES.map((second) => ({ ...attempt(), first, second })));
    await beginAttempts(pool, pairs);
    for (const step of ['first', 'second'] as const)
      await endAttempts(
        pool,
        pairs.map((each) => ({ ...each, outcome: each[step], detail: step })),
      );
    for (const { message_id, first, second } of pairs) {
      const { outcome, detail } = (await last(message_id)) ?? {};
      // A look-up that finds nothing is added to what the provider answered.
      const replaced = first === 'unknown' && second === 'lost' ? 'first. second' : 'second';
      const expected = first === 'unknown' || second === 'sent' ? [second, replaced] : [first, 'first'];
      assert.deepEqual([outcome, detail], expected, `${first}, then ${second}`);
    }
  });

  test('count the checks at the provider, and remember the first "not found"', async () => {
    const [one, other] = [attempt(), attempt()];
    await beginAttempts(pool, [one, other]);
    await recordLookups(pool, 'call_1', [one.message_id], false);
    assert.deepEqual(pick(await last(one.message_id)), [1, false]);
    await recordLookups(pool, 'call_1', [one.message_id], true);
    assert.deepEqual(pick(await last(one.message_id)), [2, true]);
    await pool.query(`UPDATE attempts SET denied_at = denied_at - interval '70 s' WHERE message_id = $1`, [
      one.message_id,
    ]);
    await recordLookups(pool, 'call_1', [one.message_id], true);
    await recordLookups(pool, 'call_1', [one.message_id], false);
    const { checks, notFoundForMs } = (await last(one.message_id)) ?? {};
    assert.equal(checks, 4);
    assert.ok((notFoundForMs ?? 0) >= 70_000);
    assert.deepEqual(pick(await last(other.message_id)), [0, false]);
  });
  const pick = (each: { checks: number; notFoundForMs: number | null } | undefined) => [
    each?.checks,
    each?.notFoundForMs != null,
  ];

  describe('locking emails', () => {
    test('returns the time until each is due, by the database’s clock', async () => {
      const [now, later, past] = [
        await acceptOne(pool, orgId),
        await acceptOne(pool, orgId, { scheduled_at: inMs(3_600_000) }),
        await acceptOne(pool, orgId, { scheduled_at: inMs(3_600_000) }),
      ];
      await pool.query(`UPDATE emails SET scheduled_at = now() - interval '1 ms' WHERE id = $1`, [past]);
      const due = new Map((await lockEmails(pool, [now, later, past])).map(({ id, dueInMs }) => [id, dueInMs]));
      assert.deepEqual([due.get(now), due.get(past)], [0, 0]);
      const wait = due.get(later);
      assert.ok(Number.isInteger(wait));
      assertRemaining(wait, 3_600_000);
    });

    test('locks in the order of ids, and skips unknown ids', async () => {
      const emails = Array.from({ length: 50 }, () => newEmail());
      await accept(pool, orgId, emails);
      const ids = emails.map(({ id }) => id);
      const locked = await lockEmails(pool, ['em_none', ...[...ids].reverse()]);
      assert.deepEqual(
        locked.map(({ id }) => id),
        ids,
      );
    });

    test('waits for the transaction that holds a lock, and returns what it wrote', async () => {
      const id = await acceptOne(pool, orgId);
      const waiting = await transaction(pool, async (client) => {
        await client.query(`UPDATE emails SET status = 'canceled', schedule_version = 9 WHERE id = $1`, [id]);
        const lock = transaction(pool, (other) => lockEmails(other, [id]));
        const early = await Promise.race([lock, sleep(100)]);
        assert.equal(early, undefined);
        return { lock };
      });
      const [email] = await waiting.lock;
      assert.deepEqual([email?.status, email?.schedule_version], ['canceled', 9]);
    });
  });
});
