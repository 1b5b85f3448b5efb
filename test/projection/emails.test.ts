import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'node:test';
import { EMAIL_STATUSES } from '../../src/domain/email/email.ts';
import { type EmailChange, type Transition, TRANSITIONS } from '../../src/domain/email/states.ts';
import { project } from '../../src/projection/emails.ts';
import { transaction } from '../../src/store/postgres/pool.ts';
import { useDatabase } from '../support/database.ts';
import { accept, acceptOne, type EmailRow, emailRow, force, newEmail, organization, timeline } from '../store/mail.ts';

type Change = Exclude<EmailChange, 'rescheduled'>;
const CHANGES = (Object.keys(TRANSITIONS) as EmailChange[]).filter((change) => change !== 'rescheduled');

/** The input of a change. */
const input = (id: string, change: Change) => ({
  id,
  ...(change === 'failed' && { error: 'given up' }),
  ...(change === 'bounced' && { error: '550 no', bounce_reason: 'mailbox_not_found' as const }),
});

const { pool } = await useDatabase(20);
const orgId = await organization(pool);

describe('the projection', () => {
  // test/domain/email-states.test.ts holds the table of transitions; this test compares SQL with it.
  for (const status of EMAIL_STATUSES)
    test(`applies every change to an email that is ${status}`, async () => {
      for (const change of CHANGES) {
        const { from, recordOnly, to, event }: Transition = TRANSITIONS[change];
        const id = await acceptOne(pool, orgId);
        await force(pool, id, status);
        const before = await emailRow(pool, id);
        const isMoved = from.includes(status);
        const isApplied = isMoved || recordOnly.includes(status);
        assert.deepEqual(await project(pool, change, [input(id, change)]), isApplied ? [id] : [], change);
        const row = await emailRow(pool, id);
        const events = isApplied && event !== null ? ['queued', event.slice('email.'.length)] : ['queued'];
        assert.deepEqual(await timeline(pool, id), events, change);
        if (!isApplied) assert.deepEqual(row, before, change);
        const { error = null, bounce_reason = null }: Partial<EmailRow> = isMoved ? input(id, change) : before;
        assert.deepEqual([row.status, row.error, row.bounce_reason], [isMoved ? to : status, error, bounce_reason]);
      }
    });

  test('changes many emails in one call, each with its own error, and returns their ids', async () => {
    const emails = Array.from({ length: 500 }, () => newEmail());
    await accept(pool, orgId, emails);
    const ids = emails.map(({ id }) => id);
    await force(pool, ids[3] as string, 'canceled');
    const changed = await project(
      pool,
      'failed',
      ids.map((id) => ({ id, error: `because of ${id}` })),
    );
    assert.deepEqual(
      [...changed].sort(),
      ids.filter((_, i) => i !== 3),
    );
    assert.equal((await emailRow(pool, ids[7] as string)).error, `because of ${ids[7]}`);
    assert.equal((await emailRow(pool, ids[3] as string)).status, 'canceled');
    assert.deepEqual(await timeline(pool, ids[499] as string), ['queued', 'failed']);
  });

  test('changes only emails of the given organization', async () => {
    const mine = await acceptOne(pool, orgId);
    const other = await organization(pool, 'others.example');
    assert.deepEqual(await project(pool, 'sent', [{ id: mine }], other), []);
    assert.equal((await emailRow(pool, mine)).status, 'queued');
    assert.deepEqual(await project(pool, 'sent', [{ id: mine }], orgId), [mine]);
  });

  test('keeps provider and message id when a later report lacks them', async () => {
    const id = await acceptOne(pool, orgId);
    await project(pool, 'sent', [{ id, provider: 'postmark', provider_message_id: 'x' }]);
    await project(pool, 'delivered', [{ id }]);
    const { provider, provider_message_id } = await emailRow(pool, id);
    assert.deepEqual([provider, provider_message_id], ['postmark', 'x']);
  });

  test('stores provider and message id also when a report came first', async () => {
    const id = await acceptOne(pool, orgId);
    // There must be a millisecond between the two in which it was sent.
    await sleep(5);
    await project(pool, 'delivered', [{ id, dedupe_key: 'Delivery x' }]);
    await project(pool, 'sent', [{ id, provider: 'postmark', provider_message_id: 'x' }]);
    const row = await emailRow(pool, id);
    assert.deepEqual([row.status, row.provider, row.provider_message_id], ['delivered', 'postmark', 'x']);
    assert.deepEqual(await timeline(pool, id), ['queued', 'sent', 'delivered']);
  });

  describe('the time of email.sent', () => {
    /** Milliseconds from the acceptance of a new email to its `email.sent`, which the provider puts at `offset`. */
    async function sentAfter(offset: number | undefined, ...earlier: Change[]): Promise<number> {
      const id = await acceptOne(pool, orgId);
      const accepted = Date.now() - 3_600_000;
      const at = [id, new Date(accepted)];
      await pool.query(`UPDATE emails SET created_at = $2, last_event_at = $2 WHERE id = $1`, at);
      for (const change of earlier) await project(pool, change, [{ ...input(id, change), dedupe_key: change }]);
      const occurredAt = offset === undefined ? {} : { occurred_at: accepted + offset };
      const before = Date.parse((await emailRow(pool, id)).last_event_at);
      await project(pool, 'sent', [{ id, dedupe_key: 'sent', ...occurredAt }]);
      assert.deepEqual(await timeline(pool, id), ['queued', 'sent', ...earlier]);
      const { rows } = await pool.query<{ type: string; created_at: string }>(
        `SELECT type, created_at FROM email_events WHERE email_id = $1`,
        [id],
      );
      const sentAt = Date.parse(rows.find(({ type }) => type === 'email.sent')?.created_at ?? '');
      assert.equal(Date.parse((await emailRow(pool, id)).last_event_at), Math.max(sentAt, before));
      return sentAt - accepted;
    }

    for (const [name, offset, earlier, [min, max]] of [
      ['is that of the provider', 1_234, [], [1_234, 1_234]],
      ['is that of the provider after an earlier report', 1_234, ['delivered'], [1_234, 1_234]],
      ['is after the acceptance when the provider’s clock is behind', -5_000, [], [1, 1]],
      ['is not in the future when the provider’s clock is ahead', 7_200_000, [], [3_600_000, 7_199_999]],
      ['is before the first report without a time', undefined, ['delivered', 'opened'], [3_599_999, 7_199_999]],
    ] as const)
      test(name, async () => {
        const after = await sentAfter(offset, ...earlier);
        assert.ok(after >= min && after <= max, `${after} ms`);
      });
  });

  test('a report corrects a failed email', async () => {
    const id = await acceptOne(pool, orgId);
    await project(pool, 'failed', [{ id, error: 'no answer' }]);
    await project(pool, 'delivered', [{ id }]);
    const row = await emailRow(pool, id);
    assert.deepEqual([row.status, row.error], ['delivered', null]);
  });

  describe('a report that is repeated', () => {
    const report = { dedupe_key: 'Delivery 1' };

    test('in sequence, concurrently or in one call is recorded once and changes nothing', async () => {
      const id = await acceptOne(pool, orgId);
      const repeated = await whileLocked(id, () =>
        Array.from({ length: 50 }, () => project(pool, 'delivered', [{ id, ...report }])),
      );
      assert.deepEqual(repeated.flat(), [id]);
      const before = await emailRow(pool, id);
      const twice = [
        { id, ...report, provider: 'smtp' as const },
        { id, ...report },
      ];
      for (let i = 0; i < 3; i++) assert.deepEqual(await project(pool, 'delivered', twice), []);
      assert.deepEqual(await timeline(pool, id), ['queued', 'delivered']);
      assert.deepEqual(await emailRow(pool, id), before);
      const other = await acceptOne(pool, orgId);
      await project(
        pool,
        'delivered',
        twice.map((each) => ({ ...each, id: other })),
      );
      assert.deepEqual(await timeline(pool, other), ['queued', 'delivered']);
    });

    test('is distinguished from other reports, and from the same report of other emails', async () => {
      const [id, other] = [await acceptOne(pool, orgId), await acceptOne(pool, orgId)];
      await project(pool, 'opened', [
        { id, dedupe_key: 'Open 1' },
        { id, dedupe_key: 'Open 2' },
        { id: other, dedupe_key: 'Open 1' },
      ]);
      assert.deepEqual(await timeline(pool, id), ['queued', 'opened', 'opened']);
      assert.deepEqual(await timeline(pool, other), ['queued', 'opened']);
    });

    test('without a key is recorded each time', async () => {
      const id = await acceptOne(pool, orgId);
      for (let i = 0; i < 3; i++) await project(pool, 'opened', [{ id }]);
      assert.deepEqual(await timeline(pool, id), ['queued', 'opened', 'opened', 'opened']);
    });
  });

  test('loses none of several concurrent changes, and the highest status remains', async () => {
    const id = await acceptOne(pool, orgId);
    const changes = ['clicked', 'delivered', 'sent', 'opened', 'delivery_delayed'] as const;
    await whileLocked(id, () => changes.map((change) => project(pool, change, [{ id, dedupe_key: change }])));
    assert.equal((await emailRow(pool, id)).status, 'clicked');
    assert.deepEqual((await timeline(pool, id)).sort(), [...changes, 'queued'].sort());
  });

  test('lets one of a concurrent cancel and claim win', async () => {
    for (let i = 0; i < 20; i++) {
      const id = await acceptOne(pool, orgId);
      await force(pool, id, 'scheduled');
      const both = ['canceled', 'claimed'] as const;
      const changed = await whileLocked(id, () => both.map((change) => project(pool, change, [{ id }])));
      assert.equal(changed.flat().length, 1);
      const winner = both[changed.findIndex((ids) => ids.length === 1)] as Change;
      assert.equal((await emailRow(pool, id)).status, TRANSITIONS[winner].to);
    }
  });

  test('changes of many emails in opposite orders do not deadlock', async () => {
    const emails = Array.from({ length: 200 }, () => newEmail());
    await accept(pool, orgId, emails);
    const inputs = emails.map(({ id }) => ({ id }));
    await Promise.all(
      Array.from({ length: 20 }, (_, i) => project(pool, 'opened', i % 2 === 0 ? inputs : [...inputs].reverse())),
    );
    assert.equal((await timeline(pool, inputs[0]?.id as string)).length, 21);
  });

  test('last_event_at always increases, and is the time of an event', async () => {
    const id = await acceptOne(pool, orgId);
    // As if another machine's clock had been ahead.
    await pool.query(`UPDATE emails SET last_event_at = now() + interval '1 hour' WHERE id = $1`, [id]);
    const { last_event_at: ahead } = await emailRow(pool, id);
    await project(pool, 'delivery_delayed', [{ id }]);
    // Two events at one time would have no order.
    assert.equal(Date.parse((await emailRow(pool, id)).last_event_at), Date.parse(ahead) + 1);

    await pool.query(`UPDATE emails SET last_event_at = created_at WHERE id = $1`, [id]);
    await project(pool, 'delivered', [{ id }]);
    const { last_event_at } = await emailRow(pool, id);
    const { rows } = await pool.query<{ created_at: string }>(
      `SELECT created_at FROM email_events WHERE email_id = $1 AND type = 'email.delivered'`,
      [id],
    );
    assert.equal(rows[0]?.created_at, last_event_at);
    assert.ok(last_event_at < ahead);
  });

  /** Starts work while an email is locked, and unlocks it once the work waits. */
  async function whileLocked<T>(id: string, begin: () => Promise<T>[]): Promise<T[]> {
    const begun = await transaction(pool, async (client) => {
      await client.query(`SELECT FROM emails WHERE id = $1 FOR UPDATE`, [id]);
      const work = begin();
      const waiting = Math.min(work.length, 19);
      for (;;) {
        await client.query('SELECT pg_stat_clear_snapshot()');
        const { rows } = await client.query<{ n: number }>(
          `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        );
        if ((rows[0]?.n ?? 0) >= waiting) break;
      }
      return work;
    });
    return Promise.all(begun);
  }
});
