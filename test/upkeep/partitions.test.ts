import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it, type TestContext } from 'node:test';
import pino from 'pino';
import { idTime } from '../../src/lib/ids.ts';
import { project } from '../../src/projection/emails.ts';
import { insertBatch } from '../../src/store/emails/batches.ts';
import { aggregateTags } from '../../src/store/emails/tags.ts';
import {
  dropPartition,
  listPartitions,
  PARTITIONED_TABLES,
  type PartitionedTable,
} from '../../src/store/upkeep/partitions.ts';
import { addPartitions, expireEmails, partitionDays } from '../../src/upkeep/partitions.ts';
import { accept, emailRow, force, newEmail, organization } from '../store/mail.ts';
import { testDatabase } from '../support/database.ts';

const DAY = 86_400_000;
/** An id of an email of that time. `newId` generates none of the past. */
const idAt = (at: number) => `em_${idTime(at)}${randomBytes(8).toString('hex')}` as const;
const log = pino({ level: 'silent' });

/** A database with an organization, dropped with the test. */
async function prepared(t: TestContext) {
  const { pool, drop } = await testDatabase();
  t.after(drop);
  const orgId = await organization(pool, 'example.com');
  const of = (retentionDays: number) => ({ pool, emailRetentionDays: retentionDays, log });
  return {
    pool,
    orgId,
    /** Accepts emails whose ids are of a time. @returns their ids */
    acceptAt: async (at: number, count: number, tags: { name: string; value: string }[] = []): Promise<string[]> => {
      const emails = Array.from({ length: count }, () => newEmail({ from_domain: 'example.com', id: idAt(at), tags }));
      await accept(pool, orgId, emails);
      return emails.map(({ id }) => id);
    },
    /** Runs the task until nothing is left. @returns how many steps it took */
    expire: async (retentionDays: number, now: number): Promise<number> => {
      for (let step = 1; step < 100; step++) {
        const { next } = await expireEmails(of(retentionDays), now, { emails: 2, rows: 2 });
        if (next === null) return step;
      }
      throw new Error('it does not end');
    },
    suffixes: async (table: PartitionedTable = 'emails'): Promise<string[]> => {
      return (await listPartitions(pool, table)).map(({ suffix }) => suffix);
    },
    /** The partitions that hold emails, with their number. */
    stored: async (): Promise<Record<string, number>> => {
      const { rows } = await pool.query<{ name: string; emails: number }>(
        `SELECT tableoid::regclass::text AS name, count(*)::int AS emails FROM emails GROUP BY 1 ORDER BY 1`,
      );
      return Object.fromEntries(rows.map(({ name, emails }) => [name.replace('emails_', ''), emails]));
    },
    counts: async (): Promise<Record<string, number>> => {
      const { rows } = await pool.query<{ value: string; emails: string }>(
        `SELECT value, emails FROM tag_counts ORDER BY value`,
      );
      return Object.fromEntries(rows.map(({ value, emails }) => [value, Number(emails)]));
    },
  };
}

describe('partitions', () => {
  it('cover a twelfth of the retention, between 3 and 30 days', () => {
    assert.deepEqual([0, 31, 90, 365, 3_650].map(partitionDays), [30, 3, 8, 30, 30]);
    assert.equal(partitionDays(1), 3);
  });

  it('are added ahead in all tables, from where the last one ends, and take the rows of the default partition', async (t) => {
    const { pool, acceptAt, suffixes, stored } = await prepared(t);
    const now = Date.now();
    const [last] = (await listPartitions(pool, 'emails')).slice(-1);
    const ids = await acceptAt(now + 45 * DAY, 2, [{ name: 'kind', value: 'a' }]);
    const [today] = await acceptAt(now, 1);
    const day = new Date(now).toISOString().slice(0, 10).replaceAll('-', '');
    assert.deepEqual(await stored(), { [day]: 1, default: 2 });
    const all = [today as string, ...ids.toSorted()];
    await project(
      pool,
      'sent',
      all.map((id) => ({ id })),
    );

    assert.equal(await addPartitions(pool, 90, now + 30 * DAY), 3);
    assert.equal(await addPartitions(pool, 90, now + 30 * DAY), 0);
    for (const table of PARTITIONED_TABLES) {
      const partitions = await listPartitions(pool, table);
      assert.deepEqual(await suffixes(table), await suffixes(), table);
      partitions.slice(1).forEach(({ first_id }, index) => assert.equal(first_id, partitions[index]?.end_id));
    }
    assert.equal((await listPartitions(pool, 'emails'))[2]?.first_id, last?.end_id);
    assert.equal((await stored())['default'], undefined);
    const { rows } = await pool.query<{ id: string; events: number }>(
      `SELECT id, (SELECT count(*)::int FROM email_events WHERE email_id = emails.id) AS events FROM emails ORDER BY id`,
    );
    assert.deepEqual(
      rows,
      all.map((id) => ({ id, events: 1 })),
    );
  });

  it('are completed after a run that was cut off between two tables', async (t) => {
    const { pool, acceptAt, suffixes } = await prepared(t);
    const at = Date.now() + 45 * DAY;
    await addPartitions(pool, 0, at);
    const [added = ''] = (await suffixes()).slice(-1);
    await dropPartition(pool, 'email_events', added);
    await acceptAt(at + 60 * DAY, 1);
    assert.notDeepEqual(await suffixes('email_events'), await suffixes());
    assert.equal(await addPartitions(pool, 0, at), 0);
    assert.deepEqual(await suffixes('email_events'), await suffixes());
    const { rows } = await pool.query(`SELECT FROM email_events_default`);
    assert.equal(rows.length, 0);
  });
});

describe('emails expire', () => {
  it('with their partition but for one that is unsent, whose tags stay in the counts', async (t) => {
    const { pool, acceptAt, expire, stored, counts } = await prepared(t);
    const now = Date.now();
    const ids = await acceptAt(now - 40 * DAY, 5, [{ name: 'kind', value: 'a' }]);
    const last = ids.sort().at(-1);
    await pool.query(`UPDATE emails SET status = 'delivered' WHERE id <> $1`, [last]);
    await aggregateTags(pool, 100);
    await expire(31, now + 31 * DAY);
    assert.deepEqual([await stored(), await counts()], [{ default: 1 }, { a: 1 }]);
    await pool.query(`UPDATE emails SET status = 'delivered' WHERE id = $1`, [last]);
    await expire(31, now + 31 * DAY);
    assert.deepEqual([await stored(), await counts()], [{}, {}]);
  });

  it('with their partition, all that belongs to them, and their tags in the counts', async (t) => {
    const { pool, orgId, acceptAt, expire, suffixes, stored, counts } = await prepared(t);
    const now = Date.now();
    await acceptAt(now - 40 * DAY, 5, [{ name: 'kind', value: 'a' }]);
    await acceptAt(now - 40 * DAY, 1, [{ name: 'kind', value: 'old' }]);
    const kept = await acceptAt(now, 2, [{ name: 'kind', value: 'a' }]);
    await pool.query(`UPDATE emails SET status = 'delivered'`);
    await aggregateTags(pool, 100);
    await pool.query(`INSERT INTO attempts (message_id, n, call, provider) SELECT id, 1, id, 'postmark' FROM emails`);
    assert.deepEqual(await counts(), { a: 7, old: 1 });
    const batch = idAt(now - 40 * DAY).replace('em_', 'bt_');
    await insertBatch(pool, orgId, { id: batch, total: 1, scheduled: 0 }, undefined);

    assert.equal(await expire(0, now), 1);
    assert.equal(await expire(90, now), 1);
    assert.deepEqual(Object.values(await stored()), [2, 6]);
    await expire(31, now + 31 * DAY);
    assert.ok(!(await suffixes()).includes('first'));
    for (const [table, key] of [
      ['batches', 'id'],
      ['batch_moves', 'batch_id'],
    ]) {
      assert.equal((await pool.query(`SELECT FROM ${table} WHERE ${key} = $1`, [batch])).rowCount, 0, table);
    }
    assert.deepEqual(Object.values(await stored()), [2]);
    assert.deepEqual(await counts(), { a: 2 });
    for (const table of PARTITIONED_TABLES) {
      assert.deepEqual(await suffixes(table), await suffixes(), table);
    }
    const { rows } = await pool.query<{ id: string }>(`SELECT message_id AS id FROM attempts ORDER BY 1`);
    assert.deepEqual(
      rows.map(({ id }) => id),
      kept.sort(),
    );
  });

  it('while an email of their partition is unsent, which stays with its body and timeline until it has ended', async (t) => {
    const { pool, acceptAt, expire, stored } = await prepared(t);
    const now = Date.now();
    const [id = ''] = await acceptAt(now - 40 * DAY, 1);
    await acceptAt(now - 40 * DAY, 1);
    await pool.query(
      `INSERT INTO email_events (email_id, type, created_at) SELECT id, 'email.rescheduled', now() FROM emails`,
    );
    await pool.query(`UPDATE emails SET status = 'delivered' WHERE id <> $1`, [id]);
    await expire(31, now + 31 * DAY);
    assert.deepEqual(await stored(), { default: 1 });
    for (const [table, column] of [
      ['email_bodies', 'email_id'],
      ['email_events', 'email_id'],
    ]) {
      const { rows } = await pool.query(`SELECT DISTINCT ${column} AS id FROM ${table}`);
      assert.deepEqual(rows, [{ id }], table);
    }
    await force(pool, id, 'sent');
    await expire(31, now + 31 * DAY);
    assert.deepEqual(await stored(), {});
  });

  it('fails emails of an organization that has been suspended for longer than the retention', async (t) => {
    const { pool, orgId, acceptAt, expire, stored } = await prepared(t);
    const now = Date.now();
    const [id = ''] = await acceptAt(now - 40 * DAY, 1);
    await pool.query(`UPDATE organizations SET suspended_at = now() - interval '20 days' WHERE id = $1`, [orgId]);
    await expire(31, now + 31 * DAY);
    assert.deepEqual(await stored(), { default: 1 });
    assert.equal((await emailRow(pool, id)).status, 'queued', 'it may still be sent');
    await pool.query(`UPDATE organizations SET suspended_at = now() - interval '32 days' WHERE id = $1`, [orgId]);
    await expire(31, now + 31 * DAY);
    assert.deepEqual(await stored(), {});
  });

  it('although an email of an earlier partition is unsent', async (t) => {
    const { pool, orgId, acceptAt, expire, stored } = await prepared(t);
    const now = Date.now();
    const unsent = await acceptAt(now - 40 * DAY, 1);
    await addPartitions(pool, 31, now + 62 * DAY);
    await acceptAt(now, 3);
    await pool.query(`UPDATE emails SET status = 'delivered' WHERE tableoid <> 'emails_first'::regclass`);
    await pool.query(`INSERT INTO attempts (message_id, n, call, provider) SELECT id, 1, id, 'postmark' FROM emails`);
    const batches = [now - 40 * DAY, now].map((at) => idAt(at).replace('em_', 'bt_'));
    for (const id of batches) await insertBatch(pool, orgId, { id, total: 1, scheduled: 0 }, undefined);
    await expire(31, now + 62 * DAY);
    assert.deepEqual(await stored(), { default: 1 });
    const beside = await pool.query(`SELECT message_id AS id FROM attempts UNION SELECT id FROM batches ORDER BY id`);
    assert.deepEqual(
      beside.rows.map(({ id }: { id: string }) => id),
      unsent,
    );
    await pool.query(`UPDATE emails SET status = 'delivered'`);
    await expire(31, now + 62 * DAY);
    assert.deepEqual(await stored(), {});
  });

  it('go on where a run was cut off', async (t) => {
    const { pool, acceptAt, expire, stored, counts } = await prepared(t);
    const now = Date.now();
    await acceptAt(now - 40 * DAY, 3, [{ name: 'kind', value: 'a' }]);
    await acceptAt(now, 1, [{ name: 'kind', value: 'a' }]);
    await pool.query(`UPDATE emails SET status = 'delivered'`);
    await aggregateTags(pool, 100);
    const deps = { pool, emailRetentionDays: 31, log };
    await expireEmails(deps, now + 31 * DAY, { emails: 2, rows: 2 });
    assert.deepEqual(await counts(), { a: 2 });
    assert.deepEqual(Object.values(await stored()), [1, 3]);
    await expire(31, now + 31 * DAY);
    assert.deepEqual(await counts(), { a: 1 });
    assert.deepEqual(Object.values(await stored()), [1]);
  });
});
