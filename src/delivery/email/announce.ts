import { announceBatches } from '../../projection/batches.ts';
import type { EmailDeps } from './contract.ts';

/** Announces batches that these emails completed. If it fails, upkeep announces them. */
export async function announce({ pool, log }: EmailDeps, ids: readonly string[]): Promise<void> {
  try {
    await announceBatches(pool, ids);
  } catch (error) {
    log.warn({ err: error }, 'could not announce completed batches');
  }
}
