import assert from 'node:assert/strict';
import { test } from 'node:test';
import { smoke, taken } from '../../bench/smoke.ts';
import { printTable } from '../../bench/table.ts';
import { makePool } from '../../src/store/postgres/pool.ts';
import { eventually } from '../support/eventually.ts';
import { emptyHome, startSendwright } from '../support/start.ts';

test('a short load of single emails and a batch: every one is sent, and once', async (t) => {
  const started = await startSendwright(t, await emptyHome());
  const stack = await started.dev();
  const began = performance.now();
  const { accepted, batchId, perSecond, batchMs } = await smoke(stack);
  const pool = makePool(stack.database_url, 'test', 1, () => undefined);
  t.after(() => pool.end());
  await eventually(
    'every email is delivered',
    async () => {
      const { rows } = await pool.query(`SELECT FROM emails WHERE status <> 'delivered' LIMIT 1`);
      return rows.length === 0;
    },
    60_000,
  );
  const seconds = (performance.now() - began) / 1_000;
  assert.deepEqual((await taken(stack)).sort(), [...accepted].sort());
  const { rows } = await pool.query<{ calls: number; batch: number }>(
    `SELECT (SELECT max(n) FROM attempts) AS calls,
            (SELECT count(*)::int FROM emails WHERE batch_id = $1) AS batch`,
    [batchId],
  );
  const [{ calls, batch } = { calls: 0, batch: 0 }] = rows;
  assert.equal(calls, 1, 'no email needed a second call of the provider');
  printTable('smoke, on this machine with all that the tests run beside it', [
    { singles: accepted.length - batch, 'accepted/s': perSecond, batch, '202 ms': batchMs, 'all delivered s': seconds },
  ]);
});
