import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EMAIL_STATUSES, type EmailStatus } from '../../src/domain/email/email.ts';
import { TRANSITIONS, type EmailChange } from '../../src/domain/email/states.ts';
import { project } from '../../src/projection/emails.ts';
import { transaction } from '../../src/store/postgres/pool.ts';
import { useDatabase } from '../support/database.ts';
import { accept, acceptOne, emailRow, force, newEmail, organization, timeline } from '../store/mail.ts';

type Change = Exclude<EmailChange, 'rescheduled'>;

/**
 * What each change does to an email in each status: `→` moves it, `n` only notes it in the timeline, `.` nothing.
 * Columns: canceled, claimed, suppressed, rejected, failed, sent, delivery_delayed, delivered, opened, clicked, bounced,
 * complained, unsubscribed.
 */
const COLUMNS: readonly Change[] = [
  'canceled',
  'claimed',
  'suppressed',
  'rejected',
  'failed',
  'sent',
  'delivery_delayed',
  'delivered',
  'opened',
  'clicked',
  'bounced',
  'complained',
  'unsubscribed',
];
const MATRIX: Readonly<Record<EmailStatus, string>> = {
  queued: '. . → → → → → → → → → → n',
  scheduled: '→ → . . . . . . . . . . .',
  sent: '. . . . . n → → → → → → n',
  delivery_delayed: '. . . . . n n → → → → → n',
  delivered: '. . . . . n n n → → → → n',
  opened: '. . . . . n n n n → → → n',
  clicked: '. . . . . n n n n n → → n',
  bounced: '. . . . . n n n n n n → n',
  complained: '. . . . . n n n n n n n n',
  suppressed: '. . . . . . . . . . . . .',
  canceled: '. . . . . . . . . . . . .',
  rejected: '. . . . . . . . . . . . .',
  failed: '. . . . . → → → → → → → n',
};
/** The status that a change leads to, and the line it leaves; `claimed` is nobody's business but ours. */
const becomes = (change: Change): EmailStatus => TRANSITIONS[change].to ?? assert.fail(`${change} moves nothing`);
const lines = (change: Change): string[] => (change === 'claimed' ? [] : [change]);

/** What goes with a change. */
const wish = (id: string, change: Change) => ({
  id,
  ...(change === 'failed' && { error: 'given up' }),
  ...(change === 'bounced' && { error: '550 no', bounce_reason: 'mailbox_not_found' as const }),
});

const { pool } = await useDatabase(20);
const orgId = await organization(pool);

describe('the projection', () => {
  test('this list has every status and every change', () => {
    assert.deepEqual(Object.keys(MATRIX).sort(), [...EMAIL_STATUSES].sort());
    assert.deepEqual([...COLUMNS, 'rescheduled'].sort(), Object.keys(TRANSITIONS).sort());
  });

  for (const status of EMAIL_STATUSES)
    for (const [column, act] of MATRIX[status].split(' ').entries()) {
      const change = COLUMNS[column] as Change;
      const rule = { '→': 'moves it', n: 'is only noted', '.': 'does nothing' }[act] as string;
      test(`${change} on an email that is ${status} ${rule}`, async () => {
        const id = await acceptOne(pool, orgId);
        await force(pool, id, status);
        const before = await emailRow(pool, id);
        const changed = await project(pool, change, [wish(id, change)]);
        const row = await emailRow(pool, id);
        assert.deepEqual(changed, act === '.' ? [] : [id]);
        assert.equal(row.status, act === '→' ? becomes(change) : status);
        assert.deepEqual(await timeline(pool, id), ['queued', ...(act === '.' ? [] : lines(change))]);
        if (act === '.') assert.deepEqual(row, before);
        if (act === 'n') assert.deepEqual([row.error, row.bounce_reason], [before.error, before.bounce_reason]);
        if (act === '→') {
          const { error = null, bounce_reason = null } = {
            error: undefined,
            bounce_reason: undefined,
            ...wish(id, change),
          };
          assert.deepEqual([row.error, row.bounce_reason], [error, bounce_reason]);
        }
      });
    }

  test('changes many at once, each with its own words, and says which', async () => {
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

  test('changes nothing when there is nothing to change', async () => {
    assert.deepEqual(await project(pool, 'sent', []), []);
    assert.deepEqual(await project(pool, 'sent', [{ id: 'em_none' }]), []);
  });

  test('changes an organization’s own emails only, when it is named', async () => {
    const mine = await acceptOne(pool, orgId);
    const other = await organization(pool, 'others.example');
    assert.deepEqual(await project(pool, 'sent', [{ id: mine }], other), []);
    assert.equal((await emailRow(pool, mine)).status, 'queued');
    assert.deepEqual(await project(pool, 'sent', [{ id: mine }], orgId), [mine]);
  });

  test('keeps who took an email, and what they call it, when later reports do not say', async () => {
    const id = await acceptOne(pool, orgId);
    await project(pool, 'sent', [{ id, provider: 'postmark', provider_message_id: 'x' }]);
    await project(pool, 'delivered', [{ id }]);
    const { provider, provider_message_id } = await emailRow(pool, id);
    assert.deepEqual([provider, provider_message_id], ['postmark', 'x']);
  });

  test('notes who took an email also when a report came before our own record', async () => {
    const id = await acceptOne(pool, orgId);
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
      await pool.query(`UPDATE email_events SET created_at = $2 WHERE email_id = $1`, at);
      await pool.query(`UPDATE emails SET last_event_at = $2 WHERE id = $1`, at);
      for (const change of earlier) await project(pool, change, [{ ...wish(id, change), dedupe_key: change }]);
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

    test('is the provider’s', async () => assert.equal(await sentAfter(1_234), 1_234));
    test('is the provider’s also when its report was recorded before', async () =>
      assert.equal(await sentAfter(1_234, 'delivered'), 1_234));
    test('is after the acceptance when the provider’s clock is behind', async () =>
      assert.equal(await sentAfter(-5_000), 1));
    test('is not in the future when the provider’s clock is ahead', async () => {
      const after = await sentAfter(7_200_000);
      assert.ok(after >= 3_600_000 && after < 7_200_000, `${after} ms`);
    });
    test('is before the first report when the provider says no time', async () => {
      const after = await sentAfter(undefined, 'delivered', 'opened');
      assert.ok(after >= 3_599_999 && after < 7_200_000, `${after} ms`);
    });
  });

  test('an email that was given up is put right by the provider’s word', async () => {
    const id = await acceptOne(pool, orgId);
    await project(pool, 'failed', [{ id, error: 'no answer' }]);
    await project(pool, 'delivered', [{ id }]);
    const row = await emailRow(pool, id);
    assert.deepEqual([row.status, row.error], ['delivered', null]);
  });

  test('a bounce must have its reason, and nothing else may', async () => {
    const id = await acceptOne(pool, orgId);
    await assert.rejects(project(pool, 'bounced', [{ id, error: 'no' }]), { code: '23514' });
    await assert.rejects(project(pool, 'failed', [{ id, error: 'no', bounce_reason: 'unknown' }]), { code: '23514' });
    await assert.rejects(project(pool, 'failed', [{ id }]), { code: '23514' });
  });

  describe('a report that is repeated', () => {
    const report = { dedupe_key: 'Delivery 1' };

    test('a hundred times, one after another, is noted once', async () => {
      const id = await acceptOne(pool, orgId);
      const changed = [];
      for (let i = 0; i < 100; i++) changed.push(...(await project(pool, 'delivered', [{ id, ...report }])));
      assert.deepEqual(changed, [id]);
      assert.deepEqual(await timeline(pool, id), ['queued', 'delivered']);
    });

    test('a hundred times at once is noted once, and nobody fails', async () => {
      const id = await acceptOne(pool, orgId);
      const repeated = await whileLocked(id, () =>
        Array.from({ length: 100 }, () => project(pool, 'delivered', [{ id, ...report }])),
      );
      assert.deepEqual(repeated.flat(), [id]);
      assert.deepEqual(await timeline(pool, id), ['queued', 'delivered']);
    });

    test('in one call is noted once', async () => {
      const id = await acceptOne(pool, orgId);
      await project(pool, 'delivered', [
        { id, ...report },
        { id, ...report },
      ]);
      assert.deepEqual(await timeline(pool, id), ['queued', 'delivered']);
    });

    test('leaves the email as it is', async () => {
      const id = await acceptOne(pool, orgId);
      await project(pool, 'delivered', [{ id, ...report }]);
      const before = await emailRow(pool, id);
      await project(pool, 'delivered', [{ id, ...report, provider: 'smtp' }]);
      assert.deepEqual(await emailRow(pool, id), before);
    });

    test('is told from others of the same email, and from the same of other emails', async () => {
      const [id, other] = [await acceptOne(pool, orgId), await acceptOne(pool, orgId)];
      await project(pool, 'opened', [
        { id, dedupe_key: 'Open 1' },
        { id, dedupe_key: 'Open 2' },
        { id: other, dedupe_key: 'Open 1' },
      ]);
      assert.deepEqual(await timeline(pool, id), ['queued', 'opened', 'opened']);
      assert.deepEqual(await timeline(pool, other), ['queued', 'opened']);
    });

    test('without a key is noted each time', async () => {
      const id = await acceptOne(pool, orgId);
      for (let i = 0; i < 3; i++) await project(pool, 'opened', [{ id }]);
      assert.deepEqual(await timeline(pool, id), ['queued', 'opened', 'opened', 'opened']);
    });
  });

  test('of several changes at once none is lost, and the status is that of the highest', async () => {
    const id = await acceptOne(pool, orgId);
    const changes = ['clicked', 'delivered', 'sent', 'opened', 'delivery_delayed'] as const;
    await whileLocked(id, () => changes.map((change) => project(pool, change, [{ id, dedupe_key: change }])));
    assert.equal((await emailRow(pool, id)).status, 'clicked');
    assert.deepEqual((await timeline(pool, id)).sort(), [...changes, 'queued'].sort());
  });

  test('of two that exclude each other, such as cancel and claim, one wins', async () => {
    for (let i = 0; i < 20; i++) {
      const id = await acceptOne(pool, orgId);
      await force(pool, id, 'scheduled');
      const both = ['canceled', 'claimed'] as const;
      const changed = await whileLocked(id, () => both.map((change) => project(pool, change, [{ id }])));
      assert.equal(changed.flat().length, 1);
      const winner = both[changed.findIndex((ids) => ids.length === 1)] as Change;
      assert.equal((await emailRow(pool, id)).status, becomes(winner));
    }
  });

  test('changes of many emails in opposite orders do not wait in a circle', async () => {
    const emails = Array.from({ length: 200 }, () => newEmail());
    await accept(pool, orgId, emails);
    const wishes = emails.map(({ id }) => ({ id }));
    await Promise.all(
      Array.from({ length: 20 }, (_, i) => project(pool, 'opened', i % 2 === 0 ? wishes : [...wishes].reverse())),
    );
    assert.equal((await timeline(pool, wishes[0]?.id as string)).length, 21);
  });

  test('the last event’s time always goes on, and is the time of a line', async () => {
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

  test('a claim is no event', async () => {
    const id = await acceptOne(pool, orgId);
    await force(pool, id, 'scheduled');
    const before = await emailRow(pool, id);
    await project(pool, 'claimed', [{ id }]);
    assert.equal((await emailRow(pool, id)).last_event_at, before.last_event_at);
  });

  test('what its caller rolls back has not happened', async () => {
    const id = await acceptOne(pool, orgId);
    const rolledBack = transaction(pool, async (client) => {
      await project(client, 'sent', [{ id }]);
      throw new Error('no');
    });
    await assert.rejects(rolledBack, { message: 'no' });
    assert.equal((await emailRow(pool, id)).status, 'queued');
    assert.deepEqual(await timeline(pool, id), ['queued']);
  });

  /** Begins work while an email is locked, and lets go of it only when the work waits. */
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
