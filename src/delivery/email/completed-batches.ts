import { announceBatches } from '../../projection/batches.ts';
import type { EmailDeps } from './contract.ts';

/** Publishes `batch.completed` for batches that these emails completed. If it fails, upkeep publishes it. */
export async function publishCompletedBatches({ pool, log }: EmailDeps, ids: readonly string[]): Promise<void> {
  try {
    await announceBatches(pool, ids);
  } catch (error) {
    log.warn({ err: error }, 'could not publish completed batches');
  }
}
