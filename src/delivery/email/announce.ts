import { announceBatches } from '../../projection/batches.ts';
import type { EmailDeps } from './contract.ts';

/** Tells customers of batches that have ended with these emails. What fails here is made up for by upkeep. */
export async function announce({ pool, log }: EmailDeps, ids: readonly string[]): Promise<void> {
  try {
    await announceBatches(pool, ids);
  } catch (error) {
    log.warn({ err: error }, 'could not tell of batches that are over');
  }
}
