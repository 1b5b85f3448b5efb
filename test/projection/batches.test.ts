import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { pino } from 'pino';
import { makeWebhookUpkeep } from '../../src/upkeep/webhooks.ts';
import { newId } from '../../src/domain/ids.ts';
import { announceBatches } from '../../src/projection/batches.ts';
import { project } from '../../src/projection/emails.ts';
import { insertBatch } from '../../src/store/emails/batches.ts';
import { insertEndpoint } from '../../src/store/webhooks/endpoints.ts';
import { accept, inMs, newEmail, organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';

const { pool } = await useDatabase(10);
const orgId = await organization(pool);
const endpoint = {
  id: newId('wh', Date.now()),
  url: 'https://example.com/',
  description: null,
  events: ['batch.completed'],
};
await insertEndpoint(pool, orgId, endpoint, Buffer.from('x'));

describe('batch.completed', () => {
  /** A batch of so many emails. */
  async function batch(queued: number, scheduled = 0): Promise<{ id: string; members: string[] }> {
    const id = newId('bt', Date.now());
    await insertBatch(pool, orgId, { id, total: queued + scheduled, scheduled }, undefined);
    const emails = Array.from({ length: queued + scheduled }, (_, i) =>
      newEmail({ batch_id: id, scheduled_at: i < queued ? null : inMs(3_600_000) }),
    );
    await accept(pool, orgId, emails);
    return { id, members: emails.map((email) => email.id) };
  }
  const send = (members: readonly string[]) =>
    project(
      pool,
      'sent',
      members.map((id) => ({ id })),
    );
  const told = async (id: string) => {
    const { rows } = await pool.query<{ data: Record<string, unknown> }>(
      `SELECT data FROM webhook_events WHERE type = 'batch.completed' AND data ->> 'batchId' = $1`,
      [id],
    );
    return rows.map(({ data }) => data);
  };

  test('tells of a batch once, when its last member stops waiting', async () => {
    const { id, members } = await batch(3);
    const [last = '', ...others] = members;
    await announceBatches(pool, members);
    await send(others);
    await announceBatches(pool, others);
    assert.deepEqual(await told(id), [], 'one still waits');
    await send([last]);
    assert.equal(await announceBatches(pool, [last]), 1);
    assert.equal(await announceBatches(pool, members), 0);
    const [{ completedAt, ...data } = {}, ...more] = await told(id);
    assert.deepEqual([data, more], [{ batchId: id, total: 3, status: 'completed', counts: { sent: 3 } }, []]);
    assert.match(String(completedAt), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  });

  test('tells of a batch once although its last members end at the same time', async () => {
    for (let round = 0; round < 10; round++) {
      const { id, members } = await batch(8);
      await Promise.all(
        members.map(async (member) => {
          await send([member]);
          await announceBatches(pool, [member]);
        }),
      );
      assert.equal((await told(id)).length, 1);
    }
  });

  test('tells of one whose members were all called back', async () => {
    const { id, members } = await batch(0, 2);
    await project(
      pool,
      'canceled',
      members.map((member) => ({ id: member })),
    );
    await announceBatches(pool, [id]);
    assert.deepEqual((await told(id))[0]?.['status'], 'canceled');
  });

  test('upkeep tells of what nobody told of, and of nothing that still waits', async () => {
    const [over, waits] = [await batch(2), await batch(1, 1)];
    await send([...over.members, ...waits.members.slice(0, 1)]);
    const chores = makeWebhookUpkeep({ pool, log: pino({ level: 'silent' }) });
    assert.deepEqual(await chores.announceBatches(null), { done: 1, next: null });
    assert.deepEqual([(await told(over.id)).length, (await told(waits.id)).length], [1, 0]);
  });
});
