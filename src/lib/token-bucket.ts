/** Tokens per second, and the capacity of the bucket. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

/** A token bucket, stored as the number of missing tokens. */
export interface Bucket {
  /** Tokens that were taken and not refilled: 0 for a full bucket, more than its capacity for an overdrawn one. */
  usage: number;
  /** The time of `usage` in milliseconds of a monotonic clock. */
  atMs: number;
}

/** The state of a bucket in whole tokens and seconds. */
export interface BucketState {
  readonly limit: number;
  readonly remaining: number;
  /** Seconds until the bucket is full. */
  readonly resetSeconds: number;
}

/** Rounding errors stay below this many tokens: without it, a request after exactly Retry-After may be refused. */
const ROUNDING = 1e-9;

/**
 * Adds the tokens for the time since `atMs`.
 * @param now milliseconds of the same clock
 */
export function refill(bucket: Bucket, { perSecond }: Rate, now: number): void {
  bucket.usage = Math.max(0, bucket.usage - ((now - bucket.atMs) / 1_000) * perSecond);
  bucket.atMs = now;
}

/**
 * Takes tokens from a bucket that was just refilled. A cost above half of the capacity needs only a half-full bucket and
 * overdraws it; otherwise it might wait forever under steady load.
 * @returns 0 if it took the tokens; otherwise the seconds until there are enough
 */
export function take(bucket: Bucket, { perSecond, burst }: Rate, cost: number): number {
  const needed = Math.min(cost, Math.max(1, burst / 2));
  const missing = bucket.usage + needed - burst;
  if (missing > ROUNDING) return Math.max(1, Math.ceil(missing / perSecond));
  bucket.usage += cost;
  return 0;
}

export function bucketState({ usage }: Bucket, { perSecond, burst }: Rate): BucketState {
  return {
    limit: burst,
    remaining: Math.max(0, Math.floor(burst - usage)),
    resetSeconds: Math.ceil(usage / perSecond),
  };
}
