import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newId } from '../../src/lib/ids.ts';
import { project } from '../../src/projection/emails.ts';
import { findBatch, aggregateBatchMoves, insertBatch } from '../../src/store/emails/batches.ts';
import { organizationFixture } from '../support/organization.ts';
import { accept, inMs, newEmail } from './mail.ts';

const { pool, orgId } = await organizationFixture(10);

/** Stores a batch, half of it scheduled. */
async function batch(total: number): Promise<{ id: string; members: { id: string }[] }> {
  const id = newId('bt');
  const emails = Array.from({ length: total }, (_, index) =>
    newEmail({ batch_id: id, scheduled_at: index % 2 === 0 ? null : inMs(60_000) }),
  );
  await insertBatch(pool, orgId, { id, total, scheduled: Math.floor(total / 2) }, undefined);
  await accept(pool, orgId, emails);
  return { id, members: emails.map((email) => ({ id: email.id })) };
}

async function moves(id: string): Promise<number> {
  const { rowCount } = await pool.query('SELECT FROM batch_moves WHERE batch_id = $1', [id]);
  return rowCount ?? 0;
}

/** Ages all moves by a minute. */
async function aMinuteLater(): Promise<void> {
  await pool.query(`UPDATE batch_moves SET at = at - interval '61 seconds'`);
}

describe('the moves of a batch', () => {
  test('one row is written for all members that one statement moves', async () => {
    const { id, members } = await batch(100);
    assert.equal(await moves(id), 2);
    await project(pool, 'claimed', members);
    assert.equal(await moves(id), 3);
    await project(pool, 'sent', members);
    assert.equal(await moves(id), 4);
    assert.deepEqual((await findBatch(pool, orgId, id))?.counts, { sent: 100 });
  });

  test('two transactions that move members do not wait for each other', async () => {
    const { id, members } = await batch(2);
    const client = await pool.connect();
    await client.query('BEGIN');
    await project(client, 'sent', members.slice(0, 1));
    const other = await pool.connect();
    await other.query(`SET lock_timeout = '2s'`);
    await project(other, 'canceled', members.slice(1));
    other.release(true);
    assert.deepEqual((await findBatch(pool, orgId, id))?.counts, { queued: 1, canceled: 1 });
    await client.query('COMMIT');
    client.release();
    assert.deepEqual((await findBatch(pool, orgId, id))?.counts, { sent: 1, canceled: 1 });
  });
});

describe('foldBatchMoves', () => {
  test('leaves one row for each pair of statuses, and changes no count', async () => {
    const { id, members } = await batch(60);
    for (const member of members) await project(pool, 'claimed', [member]);
    for (const member of members) await project(pool, 'sent', [member]);
    for (const member of members.slice(0, 20)) await project(pool, 'delivered', [member]);
    await aMinuteLater();
    const before = await findBatch(pool, orgId, id);
    assert.deepEqual([before?.status, before?.counts], ['completed', { sent: 40, delivered: 20 }]);
    assert.ok((await aggregateBatchMoves(pool, 1_000)) >= 1);
    // Created as queued and as scheduled, claimed, sent, delivered.
    assert.equal(await moves(id), 5);
    assert.deepEqual(await findBatch(pool, orgId, id), before);

    await project(pool, 'opened', members.slice(0, 1));
    await aMinuteLater();
    await aggregateBatchMoves(pool, 1_000);
    const after = await findBatch(pool, orgId, id);
    assert.deepEqual(after?.counts, { sent: 40, delivered: 19, opened: 1 });
    assert.equal(after.status, 'completed');
  });

  test('skips moves of the last minute and aggregated rows', async () => {
    await aMinuteLater();
    while ((await aggregateBatchMoves(pool, 1_000)) > 0);
    const { id } = await batch(2);
    assert.equal(await aggregateBatchMoves(pool, 1_000), 0);
    assert.equal(await moves(id), 2);
  });

  test('counts exactly while members move and several processes call it', async () => {
    const { id, members } = await batch(200);
    await Promise.all([
      ...Array.from({ length: 10 }, async (_, worker) => {
        for (const member of members.slice(20 * worker, 20 * (worker + 1))) {
          await project(pool, 'claimed', [member]);
          await project(pool, 'sent', [member]);
        }
      }),
      ...Array.from({ length: 10 }, async () => {
        const step = aMinuteLater().then(() => aggregateBatchMoves(pool, 1_000));
        await step.catch((error: unknown) => {
          // A deadlock; the next round aggregates these rows.
          if ((error as { code?: string }).code !== '40P01') throw error;
        });
      }),
    ]);
    assert.deepEqual((await findBatch(pool, orgId, id))?.counts, { sent: 200 });
    await aMinuteLater();
    await aggregateBatchMoves(pool, 1_000);
    assert.deepEqual((await findBatch(pool, orgId, id))?.counts, { sent: 200 });
  });
});
