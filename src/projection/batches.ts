import { markAnnounced, findBatch, findFinishedBatches } from '../store/emails/batches.ts';
import { type Pool, transaction } from '../store/postgres/pool.ts';
import { enqueueEvents } from '../store/webhooks/events.ts';

/**
 * Publishes `batch.completed` for batches without pending members, once per batch. Call it after the commit that may have
 * ended the last member: of two concurrent commits, the later one sees both.
 * @param ids ids of members of the batches, or of the batches
 * @returns the number of batches announced
 */
export async function announceBatches(pool: Pool, ids: readonly string[]): Promise<number> {
  let announced = 0;
  for (const { id, org_id } of await findFinishedBatches(pool, ids)) {
    await transaction(pool, async (client) => {
      if (!(await markAnnounced(client, id))) return;
      const batch = await findBatch(client, org_id, id);
      if (!batch) return;
      const { total, status, counts, completed_at } = batch;
      const data = { batchId: id, total, status, counts, ...(completed_at !== null && { completedAt: completed_at }) };
      await enqueueEvents(client, [{ org_id, type: 'batch.completed', data }]);
      announced++;
    });
  }
  return announced;
}
