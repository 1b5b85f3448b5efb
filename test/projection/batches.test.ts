import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { pino } from 'pino';
import { makeWebhookUpkeep } from '../../src/upkeep/webhooks.ts';
import { newId } from '../../src/lib/ids.ts';
import { announceBatches } from '../../src/projection/batches.ts';
import { project } from '../../src/projection/emails.ts';
import { insertBatch } from '../../src/store/emails/batches.ts';
import { insertEndpoint } from '../../src/store/webhooks/endpoints.ts';
import { accept, inMs, newEmail, organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';

const { pool } = await useDatabase(10);
const orgId = await organization(pool);
const endpoint = {
  id: newId('wh'),
  url: 'https://example.com/',
  description: null,
  events: ['batch.completed'],
};
await insertEndpoint(pool, orgId, endpoint, Buffer.from('x'));

describe('batch.completed', () => {
  /** A batch of so many emails. */
  async function batch(queued: number, scheduled = 0): Promise<{ id: string; members: string[] }> {
    const id = newId('bt');
    await insertBatch(pool, orgId, { id, total: queued + scheduled, scheduled }, undefined);
    const emails = Array.from({ length: queued + scheduled }, (_, i) =>
      newEmail({ batch_id: id, scheduled_at: i < queued ? null : inMs(3_600_000) }),
    );
    await accept(pool, orgId, emails);
    return { id, members: emails.map((email) => email.id) };
  }
  const inputs = (members: readonly string[]) => members.map((id) => ({ id }));
  const send = (members: readonly string[]) => project(pool, 'sent', inputs(members));
  const events = async (id: string) => {
    const { rows } = await pool.query<{ data: Record<string, unknown> }>(
      `SELECT data FROM webhook_events WHERE type = 'batch.completed' AND data ->> 'batchId' = $1`,
      [id],
    );
    return rows.map(({ data }) => data);
  };

  test('is written once, when the last email of a batch ends', async () => {
    const { id, members } = await batch(3);
    const [last = '', ...others] = members;
    await announceBatches(pool, members);
    await send(others);
    await announceBatches(pool, others);
    assert.deepEqual(await events(id), [], 'one email is not sent');
    await send([last]);
    assert.equal(await announceBatches(pool, [last]), 1);
    assert.equal(await announceBatches(pool, members), 0);
    const [{ completedAt, ...data } = {}, ...more] = await events(id);
    assert.deepEqual([data, more], [{ batchId: id, total: 3, status: 'completed', counts: { sent: 3 } }, []]);
    assert.match(String(completedAt), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  });

  test('is written once although the last emails end concurrently', async () => {
    for (let round = 0; round < 10; round++) {
      const { id, members } = await batch(8);
      await Promise.all(
        members.map(async (member) => {
          await send([member]);
          await announceBatches(pool, [member]);
        }),
      );
      assert.equal((await events(id)).length, 1);
    }
  });

  test('is written for a batch whose emails were all canceled', async () => {
    const { id, members } = await batch(0, 2);
    await project(pool, 'canceled', inputs(members));
    await announceBatches(pool, [id]);
    assert.deepEqual((await events(id))[0]?.['status'], 'canceled');
  });

  test('is written by upkeep for a completed batch without it, and for no other', async () => {
    const [over, waits] = [await batch(2), await batch(1, 1)];
    await send([...over.members, ...waits.members.slice(0, 1)]);
    const tasks = makeWebhookUpkeep({
      pool,
      workflows: { endEarlier: () => Promise.resolve(0) },
      log: pino({ level: 'silent' }),
    });
    assert.deepEqual(await tasks.announceBatches(null), { done: 1, next: null });
    assert.deepEqual([(await events(over.id)).length, (await events(waits.id)).length], [1, 0]);
  });
});
