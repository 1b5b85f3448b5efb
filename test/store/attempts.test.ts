import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type AttemptOutcome,
  beginAttempts,
  endAttempts,
  lastAttempts,
  lockEmails,
  noteChecks,
} from '../../src/store/emails/attempts.ts';
import { transaction } from '../../src/store/postgres/pool.ts';
import { useDatabase } from '../support/database.ts';
import { accept, acceptOne, inMs, newEmail, organization } from './mail.ts';

let count = 0;
const attempt = (fields: object = {}) => ({
  message_id: `em_${++count}`,
  n: 1,
  call: 'call_1',
  provider: 'postmark',
  ...fields,
});

const { pool } = await useDatabase();
const orgId = await organization(pool);

describe('attempts', () => {
  const last = async (id: string) => (await lastAttempts(pool, [id]))[0];

  test('begin without an outcome, aged by the database’s clock', async () => {
    const begun = attempt();
    await beginAttempts(pool, [begun]);
    const { age, ...rest } = (await last(begun.message_id)) ?? { age: NaN };
    assert.deepEqual(rest, {
      ...begun,
      failures: 1,
      outcome: null,
      detail: null,
      code: null,
      provider_message_id: null,
      changes: null,
      checks: 0,
      not_found_for: null,
      account_for: null,
    });
    assert.ok(age >= 0 && age < 60_000);
    await pool.query(`UPDATE attempts SET started_at = started_at - interval '90 s' WHERE message_id = $1`, [
      begun.message_id,
    ]);
    const older = (await last(begun.message_id))?.age ?? NaN;
    assert.ok(older >= 90_000 && older < 150_000);
  });

  test('are told by their last, each message by its own', async () => {
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

  test('have their numbers once: of two that begin with the same one, one fails', async () => {
    const begun = attempt();
    await beginAttempts(pool, [begun]);
    await assert.rejects(beginAttempts(pool, [{ ...begun, call: 'call_2' }]), { code: '23505' });
  });

  const outcomes: AttemptOutcome[] = ['sent', 'refused', 'again', 'unknown', 'lost', 'risked'];
  for (const first of outcomes)
    for (const second of outcomes) {
      const corrects = first === 'unknown' || second === 'sent';
      test(`that ended as ${first} ${corrects ? 'are corrected to' : 'do not become'} ${second}`, async () => {
        const begun = attempt();
        await beginAttempts(pool, [begun]);
        await endAttempts(pool, [{ ...begun, outcome: first, detail: 'first' }]);
        await endAttempts(pool, [{ ...begun, outcome: second, detail: 'second' }]);
        const { outcome, detail } = (await last(begun.message_id)) ?? {};
        assert.deepEqual([outcome, detail], corrects ? [second, 'second'] : [first, 'first']);
      });
    }

  test('end each in its own way, many at once', async () => {
    const begun = Array.from({ length: 500 }, () => attempt());
    await beginAttempts(pool, begun);
    await endAttempts(
      pool,
      begun.map((each, i) => ({ ...each, outcome: i % 2 ? 'sent' : 'again', detail: `${i}` })),
    );
    const ended = await lastAttempts(
      pool,
      begun.map(({ message_id }) => message_id),
    );
    const found = new Map(ended.map((each) => [each.message_id, each]));
    for (const [i, { message_id }] of begun.entries())
      assert.deepEqual(
        [found.get(message_id)?.outcome, found.get(message_id)?.detail],
        [i % 2 ? 'sent' : 'again', `${i}`],
      );
  });

  test('count how often their provider was asked, and remember its first no', async () => {
    const [one, other] = [attempt(), attempt()];
    await beginAttempts(pool, [one, other]);
    await noteChecks(pool, 'call_1', [one.message_id], false);
    assert.deepEqual(pick(await last(one.message_id)), [1, false]);
    await noteChecks(pool, 'call_1', [one.message_id], true);
    assert.deepEqual(pick(await last(one.message_id)), [2, true]);
    await pool.query(`UPDATE attempts SET denied_at = denied_at - interval '70 s' WHERE message_id = $1`, [
      one.message_id,
    ]);
    await noteChecks(pool, 'call_1', [one.message_id], true);
    await noteChecks(pool, 'call_1', [one.message_id], false);
    const { checks, not_found_for } = (await last(one.message_id)) ?? {};
    assert.equal(checks, 4);
    assert.ok((not_found_for ?? 0) >= 70_000);
    assert.deepEqual(pick(await last(other.message_id)), [0, false]);
  });
  const pick = (each: { checks: number; not_found_for: number | null } | undefined) => [
    each?.checks,
    each?.not_found_for != null,
  ];

  test('do nothing for nobody', async () => {
    await beginAttempts(pool, []);
    await endAttempts(pool, []);
    await noteChecks(pool, 'call_1', [], true);
    assert.deepEqual(await lastAttempts(pool, []), []);
  });

  describe('locking emails', () => {
    test('tells how long they are not due yet, by the database’s clock', async () => {
      const [now, later, past] = [
        await acceptOne(pool, orgId),
        await acceptOne(pool, orgId, { scheduled_at: inMs(3_600_000) }),
        await acceptOne(pool, orgId, { scheduled_at: inMs(3_600_000) }),
      ];
      await pool.query(`UPDATE emails SET scheduled_at = now() - interval '1 ms' WHERE id = $1`, [past]);
      const due = new Map((await lockEmails(pool, [now, later, past])).map(({ id, due_in }) => [id, due_in]));
      // No time at all is at once: Postgres passes over NULL among the candidates.
      assert.deepEqual([due.get(now), due.get(past)], [0, 0]);
      const wait = due.get(later) ?? NaN;
      assert.ok(Number.isInteger(wait) && wait > 3_590_000 && wait <= 3_600_000);
    });

    test('is in the order of their ids, whatever the order asked for, and passes over unknown ones', async () => {
      const emails = Array.from({ length: 50 }, () => newEmail());
      await accept(pool, orgId, emails);
      const ids = emails.map(({ id }) => id);
      const locked = await lockEmails(pool, ['em_none', ...[...ids].reverse()]);
      assert.deepEqual(
        locked.map(({ id }) => id),
        ids,
      );
    });

    test('waits for whoever holds them, and finds what that one wrote', async () => {
      const id = await acceptOne(pool, orgId);
      const waiting = await transaction(pool, async (client) => {
        await client.query(`UPDATE emails SET status = 'canceled', schedule_version = 9 WHERE id = $1`, [id]);
        const lock = lockEmails(pool, [id]);
        const early = await Promise.race([lock, new Promise((resolve) => setTimeout(resolve, 100))]);
        assert.equal(early, undefined);
        return { lock };
      });
      const [email] = await waiting.lock;
      assert.deepEqual([email?.status, email?.schedule_version], ['canceled', 9]);
    });
  });
});
