import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { makeWebhookUpkeep } from '../../src/upkeep/webhooks.ts';
import { useDatabase } from '../support/database.ts';

const { pool } = await useDatabase();

test('endEarlierWorkflows signals the workflows of an earlier version and deletes its outbox rows', async () => {
  await pool.query(
    `INSERT INTO outbox (message_id, action) VALUES ('wh_1', 'webhook'), ('dm_1', 'domain'), ('sweepFiles', 'chore')`,
  );
  const limits: number[] = [];
  const workflows = { endEarlier: async (limit: number) => limits.push(limit) };
  const upkeep = makeWebhookUpkeep({ pool, workflows, log: pino({ level: 'silent' }) });
  assert.deepEqual(await upkeep.endEarlierWorkflows(), { done: 1, next: null });
  assert.deepEqual(limits, [500]);
  const { rows } = await pool.query<{ message_id: string }>('SELECT message_id FROM outbox');
  assert.deepEqual(rows, [{ message_id: 'sweepFiles' }]);
});
