import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readBacklog } from '../../src/store/outbox/backlog.ts';
import { aggregateEmailMoves, readEmailHours } from '../../src/store/emails/hours.ts';
import { listEmails } from '../../src/store/emails/lists.ts';
import type { Db } from '../../src/store/postgres/pool.ts';
import { project } from '../../src/projection/emails.ts';
import { testDatabase, useDatabase } from '../support/database.ts';
import { LARGE, storeManyEmails } from '../../dev/fixtures/many-emails.ts';
import { explainEach, readBy } from '../support/plans.ts';
import { accept, acceptOne, inMs, newEmail, organization } from './mail.ts';

const { pool } = await useDatabase(10);

const EVER = '2000-01-01T00:00:00Z';

/** The counts of an organization over all hours. */
async function counted(orgId: string) {
  const { statuses, bounces, sent, delivered } = await readEmailHours(pool, orgId, EVER, 'hour');
  const sum: Record<string, number> = {};
  for (const counts of statuses.values()) {
    for (const [status, emails] of Object.entries(counts)) sum[status] = (sum[status] ?? 0) + emails;
  }
  const total = (steps: ReadonlyMap<number, number>) => [...steps.values()].reduce((all, emails) => all + emails, 0);
  return { statuses: sum, bounces, sent: total(sent), delivered: total(delivered) };
}

async function rowsOf(orgId: string): Promise<number> {
  const { rowCount } = await pool.query('SELECT FROM email_moves WHERE org_id = $1', [orgId]);
  return rowCount ?? 0;
}

let domains = 0;
const anOrganization = async () => {
  const domain = `o${++domains}.example`;
  return { orgId: await organization(pool, domain), domain };
};

describe('emails of an hour', () => {
  test('are counted by their current status, before and after aggregation', async () => {
    const { orgId, domain } = await anOrganization();
    const emails = Array.from({ length: 6 }, (_, index) =>
      newEmail({ from_domain: domain, scheduled_at: index === 5 ? inMs(60_000) : null }),
    );
    await accept(pool, orgId, emails);
    assert.equal(await rowsOf(orgId), 2, 'a row for each status, not for each email');
    const ids = emails.map(({ id }) => ({ id }));
    await project(pool, 'claimed', ids);
    await project(pool, 'sent', ids.slice(0, 5));
    await project(pool, 'delivered', ids.slice(0, 3));
    for (let i = 0; i < 2; i++) await project(pool, 'opened', ids.slice(0, 1));
    const bounced = emails[3]?.id ?? '';
    await project(
      pool,
      'bounced',
      ['a', 'b'].map((name) => ({
        id: bounced,
        recipient: `${name}@example.net`,
        error: 'no',
        bounce_reason: 'mailbox_full' as const,
      })),
    );
    await project(pool, 'complained', [{ id: bounced, recipient: 'a@example.net' }]);
    const expected = {
      statuses: { queued: 1, sent: 1, delivered: 2, opened: 1, complained: 1 },
      bounces: { mailbox_full: 1 },
      sent: 5,
      delivered: 3,
    };
    assert.deepEqual(await counted(orgId), expected);
    assert.ok((await aggregateEmailMoves(pool, 3)) === 3, 'as many as it may');
    assert.deepEqual(await counted(orgId), expected);
    while ((await aggregateEmailMoves(pool, 1_000)) > 0);
    assert.equal(await rowsOf(orgId), 0);
    assert.deepEqual(await counted(orgId), expected);
    await project(pool, 'failed', [{ id: emails[5]?.id ?? '', error: 'given up' }]);
    assert.deepEqual((await counted(orgId)).statuses, { failed: 1, sent: 1, delivered: 2, opened: 1, complained: 1 });
  });

  test('are counted by organization and by hour or day of acceptance', async () => {
    const [{ orgId, domain }, other] = [await anOrganization(), await anOrganization()];
    const id = await acceptOne(pool, orgId, { from_domain: domain });
    await acceptOne(pool, other.orgId, { from_domain: other.domain });
    await pool.query(`UPDATE emails SET created_at = '2026-03-01T17:59:59.999Z' WHERE id = $1`, [id]);
    await pool.query(`UPDATE email_moves SET hour = '2026-03-01T17:00Z' WHERE org_id = $1`, [orgId]);
    await project(pool, 'sent', [{ id }]);
    const read = async (since: string, by: 'hour' | 'day') => [
      ...(await readEmailHours(pool, orgId, since, by)).statuses,
    ];
    assert.deepEqual(await read('2026-03-01T17:00:00Z', 'hour'), [['2026-03-01T17:00:00.000Z', { sent: 1 }]]);
    assert.deepEqual(await read('2026-03-01T00:00:00Z', 'day'), [['2026-03-01T00:00:00.000Z', { sent: 1 }]]);
    assert.deepEqual(await read('2026-03-01T18:00:00Z', 'hour'), []);
  });

  test('include the time from due to sent', async () => {
    const { orgId, domain } = await anOrganization();
    const [one, two] = [
      await acceptOne(pool, orgId, { from_domain: domain }),
      await acceptOne(pool, orgId, { from_domain: domain, scheduled_at: inMs(5_000) }),
    ];
    await project(pool, 'claimed', [{ id: two }]);
    await pool.query(
      `UPDATE emails SET created_at = clock_timestamp() - interval '1 hour',
         scheduled_at = scheduled_at - interval '15 seconds' WHERE id = ANY ($1)`,
      [[one, two]],
    );
    await project(pool, 'sent', [{ id: one }, { id: two }]);
    const { sent } = await readEmailHours(pool, orgId, EVER, 'hour');
    // 3,600,000 ms <= 2^(44/2); 10,000 ms <= 2^(27/2).
    assert.deepEqual([...sent].sort(), [
      [27, 1],
      [44, 1],
    ]);
  });

  test('are counted exactly while many workers change emails and rows are aggregated', async () => {
    const { orgId, domain } = await anOrganization();
    const emails = Array.from({ length: 200 }, () => newEmail({ from_domain: domain }));
    await accept(pool, orgId, emails);
    const ending = new AbortController();
    const aggregating = (async () => {
      while (!ending.signal.aborted) await aggregateEmailMoves(pool, 3);
    })();
    const seen: number[] = [];
    await Promise.all(
      Array.from({ length: 20 }, async (_, part) => {
        const ids = emails.slice(part * 10, part * 10 + 10).map(({ id }) => ({ id }));
        for (const change of ['sent', 'delivered', 'opened'] as const) {
          await project(pool, change, ids);
          const { statuses } = await counted(orgId);
          seen.push(Object.values(statuses).reduce((sum, emails) => sum + emails, 0));
        }
      }),
    );
    ending.abort();
    await aggregating;
    assert.deepEqual([...new Set(seen)], [200], 'every reader sees each email once');
    assert.deepEqual((await counted(orgId)).statuses, { opened: 200 });
  });
});

test('no statement of the overview reads many rows', async (t) => {
  const many = await testDatabase(3);
  t.after(many.drop);
  await storeManyEmails(many.pool, 60_000);
  await many.pool.query(
    `INSERT INTO email_hours (org_id, hour, measure, name, emails)
     SELECT CASE n % 10 WHEN 0 THEN $1 ELSE 'org_' || n % 10 END, timestamptz '2026-01-01' + n * interval '1 h', 'status',
            'delivered', 1
     FROM generate_series(1, 60000) AS n`,
    [LARGE],
  );
  await many.pool.query('VACUUM ANALYZE');
  const overview = async (db: Db) => {
    await readEmailHours(db, LARGE, EVER, 'hour');
    await readBacklog(db, LARGE);
    await listEmails(db, LARGE, { tags: [], status: null, batch_id: null }, null, 10);
  };
  await explainEach(many.pool, [['the overview', overview]], (steps, message) => {
    for (const node of steps) {
      const table = node['Relation Name'];
      // Rows that are not aggregated yet are those of a second, of all organizations.
      if (table === undefined || table === 'email_moves') continue;
      assert.notEqual(node['Node Type'], 'Seq Scan', message);
      assert.ok(readBy(node) <= 10_001, message);
    }
  });
});
