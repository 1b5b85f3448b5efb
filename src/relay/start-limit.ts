import { type Bucket, type Rate, refill, bucketState } from '../lib/token-bucket.ts';

/** Limits by a token bucket how many workflows are started. */
export interface StartLimit {
  /** The number of whole tokens. */
  readonly available: () => number;
  /** Takes tokens, at most those that are available. */
  readonly take: (tokens: number) => void;
  readonly msUntilNext: () => number;
}

/** A burst may use the tokens of this time. */
const BURST_SECONDS = 2.5;

/** Returns the capacity of a bucket. */
export function capacityOf(tokensPerSecond: number): number {
  return Math.max(1, tokensPerSecond * BURST_SECONDS);
}

/** @param now a monotonic clock in milliseconds */
export function makeStartLimit(perSecond: number, now: () => number): StartLimit {
  const rate: Rate = { perSecond, burst: capacityOf(perSecond) };
  const bucket: Bucket = { usage: 0, atMs: now() };
  return {
    available: () => {
      refill(bucket, rate, now());
      return bucketState(bucket, rate).remaining;
    },
    take: (tokens) => {
      bucket.usage = Math.min(rate.burst, bucket.usage + tokens);
    },
    msUntilNext: () => {
      refill(bucket, rate, now());
      return Math.max(0, Math.ceil(((bucket.usage + 1 - rate.burst) / perSecond) * 1_000));
    },
  };
}
