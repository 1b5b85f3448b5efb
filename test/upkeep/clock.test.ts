import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { newId } from '../../src/lib/ids.ts';
import { queryOneRow } from '../../src/store/postgres/pool.ts';
import { listPartitions } from '../../src/store/upkeep/partitions.ts';
import { addDelivery } from '../../src/store/webhooks/deliveries.ts';
import { insertEndpoint } from '../../src/store/webhooks/endpoints.ts';
import { makePartitionUpkeep } from '../../src/upkeep/partitions.ts';
import { makeWebhookUpkeep } from '../../src/upkeep/webhooks.ts';
import { accept, newEmail } from '../store/mail.ts';
import { organizationFixture } from '../support/organization.ts';

const { pool, orgId } = await organizationFixture();

test('a worker whose clock is ahead by 400 days deletes nothing early, and adds no partitions for that time', async (t) => {
  const log = pino({ level: 'silent' });
  const partitions = makePartitionUpkeep({ pool, emailRetentionDays: 90, requestLogDays: 7, log });
  const webhooks = makeWebhookUpkeep({ pool, workflows: { endEarlier: async () => 0 }, log });
  const runAll = async (): Promise<string[]> => {
    await partitions.addPartitions();
    await partitions.expireEmails();
    await partitions.rotateRequestLog();
    await webhooks.deleteOldDeliveries();
    const all = [...(await listPartitions(pool, 'emails')), ...(await listPartitions(pool, 'api_requests'))];
    return all.map(({ suffix }) => suffix);
  };
  await accept(pool, orgId, [newEmail()]);
  await pool.query(`UPDATE emails SET status = 'delivered'`);
  const endpoint = { id: newId('wh'), url: 'https://example.com/', description: null, events: [] };
  await insertEndpoint(pool, orgId, endpoint, Buffer.from('x'));
  await addDelivery(pool, endpoint.id, { id: newId('evt'), type: 'webhook.test', data: {} });
  const before = await runAll();

  const ahead = Date.now() + 400 * 86_400_000;
  t.mock.method(Date, 'now', () => ahead);
  assert.deepEqual(await runAll(), before);
  const counts = `SELECT (SELECT count(*)::int FROM emails) AS emails,
                    (SELECT count(*)::int FROM webhook_deliveries WHERE status = 'pending') AS deliveries`;
  assert.deepEqual(await queryOneRow(pool, counts), { emails: 1, deliveries: 1 });
});
