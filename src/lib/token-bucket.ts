/** How fast a bucket fills, and how many tokens it holds when it is full. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

/** A token bucket, told by what is missing in it. */
export interface Bucket {
  /** Tokens that were taken out and have not flowed back: none when it is full, more than it holds when it is overdrawn. */
  debt: number;
  /** When that was so: milliseconds of a monotonic clock. */
  at: number;
}

/** Where a bucket stands, in whole tokens and seconds. */
export interface Standing {
  readonly limit: number;
  readonly remaining: number;
  /** Until it is full again. */
  readonly reset: number;
}

/** Lets flow back what has come in meanwhile. */
export function refill(bucket: Bucket, { perSecond }: Rate, now: number): void {
  bucket.debt = Math.max(0, bucket.debt - ((now - bucket.at) / 1_000) * perSecond);
  bucket.at = now;
}

/**
 * Takes tokens out of a bucket that was just refilled. What costs more than half of a full bucket passes when it is half
 * full and leaves it overdrawn, for else it would have to wait for a quiet time that may never come.
 * @returns 0 when they were taken; else the seconds until they could be, and nothing was taken
 */
export function take(bucket: Bucket, { perSecond, burst }: Rate, cost: number): number {
  const needed = Math.min(cost, Math.max(1, burst / 2));
  const missing = bucket.debt + needed - burst;
  if (missing > 0) return Math.max(1, Math.ceil(missing / perSecond));
  bucket.debt += cost;
  return 0;
}

export function standing({ debt }: Bucket, { perSecond, burst }: Rate): Standing {
  return {
    limit: burst,
    remaining: Math.max(0, Math.floor(burst - debt)),
    reset: Math.ceil(debt / perSecond),
  };
}
