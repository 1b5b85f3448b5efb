import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LARGE, storeManyEmails } from '../../dev/fixtures/many-emails.ts';
import { readBacklog } from '../../src/store/outbox/backlog.ts';
import { listEmails } from '../../src/store/emails/lists.ts';
import type { Db } from '../../src/store/postgres/pool.ts';
import { readSeries } from '../../src/store/statistics/series.ts';
import { deleteOldStatistics } from '../../src/store/statistics/totals.ts';
import { useDatabase } from '../support/database.ts';
import { explainEach, readBy } from '../support/plans.ts';

const { pool } = await useDatabase(3);

test('no statement of the overview or of statistics reads rows of other periods or organizations', async () => {
  await storeManyEmails(pool, 60_000);
  await pool.query(
    `INSERT INTO stat_totals
     SELECT CASE n % 10 WHEN 0 THEN $1 ELSE 'org_' || n % 10 END, 'email', dimension, 'hour',
            date_trunc('hour', now(), 'UTC') - n / 10 * interval '1 hour', 'key', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            '{"15": 1}', '{"20": 1}'
     FROM generate_series(1, 20000) AS n, unnest(ARRAY['all', 'domain', 'tag:kind']) AS dimension`,
    [LARGE],
  );
  await pool.query('VACUUM ANALYZE');
  const period = { from: new Date(Date.now() - 31 * 86_400_000), to: new Date() };
  const filter = { channel: 'email', ...period, step: 'hour', key: null } as const;
  const read = async (db: Db) => {
    for (const dimension of ['all', 'tag:kind']) await readSeries(db, LARGE, { ...filter, dimension }, 50);
    await readBacklog(db, LARGE);
    await listEmails(db, LARGE, { tags: [], status: null, batch_id: null }, null, 10);
    await deleteOldStatistics(db, 5_000);
  };
  await explainEach(pool, [['the overview', read]], (steps, message) => {
    for (const node of steps) {
      const table = node['Relation Name'];
      // Rows that are not aggregated yet are those of a second, of all organizations; the lease is one row.
      if (table === undefined || table === 'stat_additions' || table === 'relay_lease') continue;
      assert.notEqual(node['Node Type'], 'Seq Scan', message);
      assert.ok(readBy(node) <= (table === 'stat_totals' ? 745 : 10_001), message);
    }
  });
});
