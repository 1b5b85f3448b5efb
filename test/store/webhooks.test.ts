import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { idTime, newId } from '../../src/lib/ids.ts';
import { type Db, transaction } from '../../src/store/postgres/pool.ts';
import {
  addDelivery,
  deleteOldDeliveries,
  findAttempts,
  listDeliveries,
  replayPeriod,
} from '../../src/store/webhooks/deliveries.ts';
import { enqueueEvents } from '../../src/store/webhooks/events.ts';
import { type DueDelivery, findDue, recordAttempts, type NewAttempt } from '../../src/store/webhooks/attempts.ts';
import type { Cursor } from '../../src/store/postgres/page.ts';
import { deleteEndpoint, insertEndpoint, rotateSecret } from '../../src/store/webhooks/endpoints.ts';
import { openEndpoint } from '../../src/store/webhooks/leases.ts';
import { organizationFixture } from '../support/organization.ts';
import { eventually } from '../support/eventually.ts';
import { waitForBlocked } from '../support/locks.ts';
import { accept, newEmail } from './mail.ts';

const { pool, orgId } = await organizationFixture(10);

test('the previous and the oldest secret sign for a day after they were replaced', async () => {
  const id = newId('wh');
  const fields = { id, url: 'https://example.com/', description: null, events: [] };
  await insertEndpoint(pool, orgId, fields, Buffer.from('1'));
  const rotate = (secret: string) => rotateSecret(pool, orgId, id, Buffer.from(secret), 24);
  const pass = (hours: number) =>
    pool.query(
      `UPDATE webhook_endpoints SET old_until = old_until - make_interval(hours => $1),
                                    older_until = older_until - make_interval(hours => $1)`,
      [hours],
    );
  const secrets = async () => {
    const { secret, previous_secrets: previous } = (await openEndpoint(pool, id)) ?? assert.fail();
    return [secret, ...previous].join(' ');
  };
  await rotate('2');
  assert.equal(await secrets(), '2 1');
  await pass(12);
  await rotate('3');
  await rotate('4');
  assert.equal(await secrets(), '4 3 1');
  await pass(12);
  assert.equal(await secrets(), '4 3');
  await rotate('5');
  assert.equal(await secrets(), '5 4 3');
  await pass(24);
  assert.equal(await secrets(), '5');
  await rotate('6');
  assert.equal(await secrets(), '6 5');
});

describe('deliveries to endpoints', () => {
  /** Contains every delivery. */
  const period = { since: '2020-01-01T00:00:00Z', until: '9999-01-01T00:00:00Z', status: null };
  afterEach(() => pool.query('DELETE FROM webhook_endpoints'));

  async function endpoint(): Promise<string> {
    const id = newId('wh');
    await insertEndpoint(
      pool,
      orgId,
      { id, url: 'https://example.com/', description: null, events: [] },
      Buffer.from('x'),
    );
    return id;
  }
  let count = 0;
  /** @param at Unix milliseconds of its id */
  const happen = (db: Db = pool, at = Date.now()) => {
    const event_id = `evt_${idTime(at)}${String(++count).padStart(16, '0')}`;
    return enqueueEvents(db, [{ event_id, org_id: orgId, type: 'suppression.added', data: {} }]);
  };
  const tried = (
    { id, event_id: eventId, due_at: dueAt }: DueDelivery,
    fields: Partial<NewAttempt> = {},
  ): NewAttempt => ({
    ...{ id, eventId, dueAt },
    at: new Date().toISOString(),
    statusCode: 200,
    durationMs: 10,
    response: 'ok',
    error: null,
    status: 'succeeded',
    retryInMs: null,
    ...fields,
  });
  /** Times are rounded to a millisecond, also up, so that a delivery may be due only then. */
  const firstDue = (id: string): Promise<DueDelivery> =>
    eventually('a delivery is due', async () => (await findDue(pool, id, [], 1))[0]);
  const states = async (id: string) => {
    const { rows } = await pool.query<{ status: string; tries: number }>(
      'SELECT status, tries FROM webhook_deliveries WHERE endpoint_id = $1 ORDER BY id',
      [id],
    );
    return rows.map(({ status, tries }) => `${status} ${tries}`);
  };

  test('findDue returns the longest due first, without those in flight', async () => {
    const id = await endpoint();
    for (let i = 0; i < 3; i++) await happen();
    const all = (await findDue(pool, id, [], 10)).map((each) => each.id);
    assert.deepEqual(
      (await findDue(pool, id, [all[0] as string], 1)).map((each) => each.id),
      [all[1]],
    );
    await pool.query(`UPDATE webhook_deliveries SET next_attempt_at = now() - interval '1 h' WHERE id = $1`, [all[2]]);
    assert.equal((await findDue(pool, id, [], 10))[0]?.id, all[2]);
  });

  const failure = { status: 'pending', retryInMs: 0 } as const;
  test('an event keeps what the first attempt that failed has posted, for all endpoints', async () => {
    const [one, two] = [await endpoint(), await endpoint()];
    await happen();
    const posted = (payload: string) => ({ payload, data: {}, to: null });
    const [first, second] = [await firstDue(one), await firstDue(two)];
    await Promise.all([
      recordAttempts(pool, [tried(first, { ...failure, posted: posted('a') })]),
      recordAttempts(pool, [tried(second, { ...failure, posted: posted('b') })]),
    ]);
    const { payload } = await firstDue(one);
    assert.match(payload ?? '', /^[ab]$/);
    assert.equal((await firstDue(two)).payload, payload);
    await recordAttempts(pool, [tried(await firstDue(one), { ...failure, posted: posted('c') })]);
    assert.equal((await firstDue(one)).payload, payload);
  });

  test('an event keeps no payload that was built before an erasure', async () => {
    const id = await endpoint();
    const [email] = await accept(pool, orgId, [newEmail({ to: ['ada@example.com'] })]);
    for (const erase of [
      `UPDATE emails SET "to" = '["erased@erased.invalid"]' WHERE id = $1`,
      `UPDATE webhook_events SET data = '{"recipient": "erased@erased.invalid"}' WHERE message_id = $1`,
    ]) {
      const due = await firstDue(id);
      const posted = { payload: 'ada@example.com', data: due.data, to: due.email?.to ?? null };
      await pool.query(erase, [email?.id]);
      await recordAttempts(pool, [tried(due, { ...failure, posted })]);
      assert.equal((await firstDue(id)).payload, null);
    }
    const { email: erased, data, ...due } = await firstDue(id);
    assert.deepEqual([erased?.to, data['recipient']], [['erased@erased.invalid'], 'erased@erased.invalid']);
    const posted = { payload: 'now', data, to: erased?.to ?? null };
    await recordAttempts(pool, [tried({ ...due, email: erased, data }, { ...failure, posted })]);
    assert.equal((await firstDue(id)).payload, 'now');
  });

  test('an event keeps no payload of an attempt that succeeded', async () => {
    const [one, two] = [await endpoint(), await endpoint()];
    await happen();
    await recordAttempts(pool, [tried(await firstDue(one))]);
    assert.equal((await firstDue(two)).payload, null);
  });

  test('an attempt that is recorded twice counts and is listed once; it does not count if its delivery was replayed', async () => {
    const id = await endpoint();
    await happen();
    const failed = tried(await firstDue(id), { statusCode: 500, status: 'pending', retryInMs: 0 });
    await recordAttempts(pool, [failed]);
    await recordAttempts(pool, [failed]);
    assert.deepEqual(await states(id), ['pending 1']);
    assert.equal((await findAttempts(pool, failed.id)).length, 1);
    // Replaying resets the number of failures, which is 0 already the second time.
    for (let i = 0; i < 2; i++) {
      const inFlight = tried(await firstDue(id));
      await sleep(5);
      assert.equal((await replayPeriod(pool, id, period, null, 10)).replayed, 1);
      await recordAttempts(pool, [inFlight]);
      assert.deepEqual(await states(id), ['pending 0']);
      assert.equal((await findAttempts(pool, failed.id)).length, 2 + i, 'it is listed');
    }
  });

  test('replayPeriod replays each delivery of a period once, in steps', async () => {
    const id = await endpoint();
    for (let i = 0; i < 7; i++) await happen();
    const due = await findDue(pool, id, [], 10);
    await recordAttempts(
      pool,
      due.map((each) => tried(each)),
    );
    const steps = [];
    let after: { created_at: string; id: string } | null = null;
    do {
      const step = await replayPeriod(pool, id, period, after, 3);
      steps.push(step.replayed);
      after = step.last;
    } while (after);
    assert.deepEqual(steps, [3, 3, 1, 0]);
    assert.deepEqual(new Set(await states(id)), new Set(['pending 0']));
  });

  test('replayPeriod has more when a selected delivery is deleted before it is replayed', async () => {
    const id = await endpoint();
    for (let i = 0; i < 3; i++) await happen();
    const [first, second] = (await listDeliveries(pool, id, null, null, 3)).reverse();
    const replaying = await transaction(pool, async (upkeep) => {
      await upkeep.query('DELETE FROM webhook_deliveries WHERE id = $1', [first?.id]);
      const step = replayPeriod(pool, id, period, null, 2);
      await waitForBlocked(pool);
      return { step };
    });
    const { replayed, last, hasMore } = await replaying.step;
    assert.deepEqual([replayed, last?.id, hasMore], [1, second?.id, true]);
    assert.equal((await replayPeriod(pool, id, period, last, 2)).hasMore, false);
  });

  test('deliveries of all statuses are listed in one order, page by page, and replayed in it', async () => {
    const id = await endpoint();
    for (let i = 0; i < 9; i++) await happen();
    // Some have the same time.
    await pool.query(
      `UPDATE webhook_deliveries AS delivery
       SET status = (ARRAY['pending', 'succeeded', 'failed'])[1 + n % 3], created_at = timestamptz '2026-01-01Z' + n / 2 * interval '1 s',
           next_attempt_at = CASE n % 3 WHEN 0 THEN now() END
       FROM (SELECT id, row_number() OVER (ORDER BY id)::int AS n FROM webhook_deliveries WHERE endpoint_id = $1) AS numbered
       WHERE delivery.id = numbered.id`,
      [id],
    );
    const { rows } = await pool.query<{ id: string }>(
      'SELECT id FROM webhook_deliveries WHERE endpoint_id = $1 ORDER BY created_at DESC, id DESC',
      [id],
    );
    const listed: string[] = [];
    let after: Cursor | null = null;
    do {
      const page: Cursor[] = await listDeliveries(pool, id, null, after, 2);
      listed.push(...page.map((each) => each.id));
      after = page.at(-1) ?? null;
    } while (after);
    const all = rows.map((row) => row.id);
    assert.deepEqual(listed, all);
    const failed = await listDeliveries(pool, id, 'failed', null, 10);
    assert.equal(failed.length, 3);
    const { last } = await replayPeriod(pool, id, period, null, 4);
    assert.equal(last?.id, all.at(-4));
  });

  test('a deleted endpoint leaves no pending delivery, so that the dispatcher does not search it', async () => {
    const [gone, kept] = [await endpoint(), await endpoint()];
    await happen();
    assert.equal(await deleteEndpoint(pool, 'org_another', gone), false);
    assert.deepEqual(await states(gone), ['pending 0']);
    assert.equal(await deleteEndpoint(pool, orgId, gone), true);
    assert.deepEqual([await states(gone), await states(kept)], [['failed 0'], ['pending 0']]);
  });

  test('a disabled endpoint gets no deliveries', async () => {
    const id = await endpoint();
    await pool.query(`UPDATE webhook_endpoints SET status = 'disabled' WHERE id = $1`, [id]);
    await happen();
    assert.equal(await addDelivery(pool, id, { id: newId('evt'), type: 'webhook.test', data: {} }), undefined);
    assert.deepEqual(await states(id), []);
  });

  test('deletes deliveries that are older than 30 days in steps, with their attempts, and keeps later ones', async () => {
    const id = await endpoint();
    const [old, young] = [Date.now() - 31 * 86_400_000, Date.now() - 29 * 86_400_000];
    for (let i = 0; i < 5; i++) await happen(pool, old);
    await happen(pool, young);
    const due = await findDue(pool, id, [], 10);
    await recordAttempts(
      pool,
      due.map((each) => tried(each)),
    );
    const before = idTime(Date.now() - 30 * 86_400_000);
    const steps = [];
    for (let done = 2; done === 2;) steps.push((done = await deleteOldDeliveries(pool, before, 2)));
    assert.deepEqual(steps, [2, 2, 1]);
    const { rows } = await pool.query(`
      SELECT (SELECT count(*)::int FROM webhook_deliveries WHERE endpoint_id = '${id}') AS deliveries,
             (SELECT count(*)::int FROM webhook_attempts JOIN webhook_deliveries AS delivery ON delivery.id = delivery_id
              WHERE endpoint_id = '${id}') AS tries,
             (SELECT count(*)::int FROM webhook_attempts WHERE delivery_id < 'whd_' || '${before}') AS old_tries,
             (SELECT count(*)::int FROM webhook_events WHERE id < 'evt_' || '${before}') AS old_events`);
    assert.deepEqual(rows, [{ deliveries: 1, tries: 1, old_tries: 0, old_events: 0 }]);
  });

  test('records no attempt of a delivery that was deleted while it was in flight', async () => {
    const id = await endpoint();
    await happen(pool, Date.now() - 31 * 86_400_000);
    const inFlight = await firstDue(id);
    await deleteOldDeliveries(pool, idTime(Date.now() - 30 * 86_400_000), 10);
    await recordAttempts(pool, [tried(inFlight)]);
    const { rows } = await pool.query('SELECT FROM webhook_attempts WHERE delivery_id = $1', [inFlight.id]);
    assert.equal(rows.length, 0);
  });
});
