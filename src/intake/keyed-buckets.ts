import { LRUCache } from 'lru-cache';
import { type Bucket, type Rate, refill, take } from '../lib/token-bucket.ts';

/** The maximum number of keys in memory. The least recently used one is evicted; it then starts with a full bucket. */
const MAX_KEYS = 50_000;

/** Token buckets of one process, one for each key. Both methods return 0, or the seconds until there is a token. */
export interface KeyedBuckets {
  readonly take: (key: string) => number;
  /** Takes no token. */
  readonly check: (key: string) => number;
}

export function makeKeyedBuckets(rate: Rate): KeyedBuckets {
  const buckets = new LRUCache<string, Bucket>({ max: MAX_KEYS });
  return {
    take(key) {
      const now = performance.now();
      const bucket = buckets.get(key) ?? { usage: 0, atMs: now };
      refill(bucket, rate, now);
      buckets.set(key, bucket);
      return take(bucket, rate, 1);
    },
    check(key) {
      const bucket = buckets.get(key);
      if (!bucket) return 0;
      refill(bucket, rate, performance.now());
      // Takes from a copy, so that the check takes no token.
      return take({ ...bucket }, rate, 1);
    },
  };
}
