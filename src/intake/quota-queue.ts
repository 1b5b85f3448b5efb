import { LRUCache } from 'lru-cache';
import { type Semaphore, makeSemaphore } from '../lib/semaphore.ts';

/** Emails of one organization that are counted concurrently: one holds the lock, the others are in transit. */
const MAX_CONCURRENT_EMAILS = 4;
/** Organizations that are remembered to have a quota; the least recently used one is evicted. */
const MAX_ORGANIZATIONS = 10_000;

/**
 * Emails of an organization with a quota are counted one after the other, each until its commit. Those with files, which
 * are stored singly, wait here without a database connection, so that a burst of them leaves connections to others.
 */
export interface QuotaQueue {
  /** Runs `work` in turn, or immediately for an organization that is not known to have a quota. */
  readonly run: <T>(orgId: string, work: () => Promise<T>) => Promise<T>;
  /** Records whether the last email of an organization was counted against a quota. */
  readonly note: (orgId: string, counted: boolean) => void;
}

export function makeQuotaQueue(): QuotaQueue {
  const limits = new LRUCache<string, Semaphore>({ max: MAX_ORGANIZATIONS });
  return {
    async run(orgId, work) {
      const release = await limits.get(orgId)?.take(1);
      return work().finally(release);
    },
    note(orgId, isCounted) {
      if (!isCounted) limits.delete(orgId);
      else if (!limits.has(orgId)) limits.set(orgId, makeSemaphore(MAX_CONCURRENT_EMAILS));
    },
  };
}
