import { LRUCache } from 'lru-cache';
import { type Semaphore, makeSemaphore } from '../lib/semaphore.ts';

/** The maximum number of concurrent transactions per organization with a quota: one holds the lock, the others are in transit. */
const MAX_CONCURRENT_EMAILS = 4;
/** The maximum number of organizations in the cache of those with a quota; the least recently used one is evicted. */
const MAX_ORGANIZATIONS = 10_000;

/**
 * Limits the transactions that wait for an organization's quota. The quota row is locked until the commit. Emails with files are
 * stored one by one; they wait here without a database connection, so that a burst leaves connections to others.
 */
export interface QuotaQueue {
  /** Runs `work` when the organization has a free slot; immediately if it is not known to have a quota. */
  readonly run: <T>(orgId: string, work: () => Promise<T>) => Promise<T>;
  /** Records whether the last email of an organization counted against a quota. */
  readonly recordUsage: (orgId: string, counted: boolean) => void;
}

export function makeQuotaQueue(): QuotaQueue {
  const limits = new LRUCache<string, Semaphore>({ max: MAX_ORGANIZATIONS });
  return {
    async run(orgId, work) {
      const release = await limits.get(orgId)?.take(1);
      return work().finally(release);
    },
    recordUsage(orgId, isCounted) {
      if (!isCounted) limits.delete(orgId);
      else if (!limits.has(orgId)) limits.set(orgId, makeSemaphore(MAX_CONCURRENT_EMAILS));
    },
  };
}
