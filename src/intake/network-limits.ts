import { LRUCache } from 'lru-cache';
import { ServiceError } from '../domain/errors.ts';
import { networkOf } from '../lib/ip-ranges.ts';
import { type Bucket, type Rate, refill, take } from '../lib/token-bucket.ts';

/** The capacity of a network's bucket, in seconds of its rate. */
const BURST_SECONDS = 5;
/** The maximum number of networks in memory. The least recently used one is evicted; it then starts with a full bucket. */
const MAX_NETWORKS = 50_000;

/** Limits the cost of callers without valid credentials. Each process has a token bucket per network (`networkOf`) in memory. */
export interface NetworkLimits {
  /** Counts a request. @throws ServiceError rate_limit_exceeded */
  readonly take: (address: string) => void;
  /** Checks the limit before a request whose credentials are not verified yet. @throws ServiceError rate_limit_exceeded */
  readonly check: (address: string) => void;
  /** Counts a request with invalid credentials. */
  readonly countFailure: (address: string) => void;
}

/** @param perSecond tokens per network; 0 means no limit */
export function makeNetworkLimits(perSecond: number): NetworkLimits {
  if (perSecond === 0) return { take: () => undefined, check: () => undefined, countFailure: () => undefined };
  const rate: Rate = { perSecond, burst: perSecond * BURST_SECONDS };
  const buckets = new LRUCache<string, Bucket>({ max: MAX_NETWORKS });

  const takeToken = (address: string): number => {
    const network = networkOf(address);
    const now = performance.now();
    const bucket = buckets.get(network) ?? { usage: 0, atMs: now };
    refill(bucket, rate, now);
    buckets.set(network, bucket);
    return take(bucket, rate, 1);
  };
  const refuse = (waitSeconds: number): void => {
    if (waitSeconds === 0) return;
    const message = `more than ${perSecond} requests a second from your network; try again in ${waitSeconds} s`;
    throw new ServiceError('rate_limit_exceeded', message, undefined, waitSeconds);
  };
  return {
    take: (address) => refuse(takeToken(address)),
    check(address) {
      const bucket = buckets.get(networkOf(address));
      if (!bucket) return;
      refill(bucket, rate, performance.now());
      // Takes from a copy, so that the check takes no token.
      refuse(take({ ...bucket }, rate, 1));
    },
    countFailure: (address) => void takeToken(address),
  };
}
