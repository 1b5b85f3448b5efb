import { LRUCache } from 'lru-cache';
import { ServiceError } from '../domain/errors.ts';
import { networkOf } from '../lib/ip-ranges.ts';
import { type Bucket, type Rate, refill, take } from '../lib/token-bucket.ts';

/** Seconds of the rate that a network may save up. */
const BURST_SECONDS = 5;
/** Networks in memory; the one that was not seen for longest is forgotten, and begins with a full bucket. */
const MAX_NETWORKS = 50_000;

/**
 * Limits what callers without a valid credential cost: a token bucket for each network (`networkOf`), in the memory of
 * this process.
 */
export interface NetworkLimits {
  /** Counts a request of its own. @throws ServiceError rate_limit_exceeded */
  readonly take: (address: string) => void;
  /** Before a request whose credential is not known yet. @throws ServiceError rate_limit_exceeded */
  readonly check: (address: string) => void;
  /** After a request whose credential was wrong. */
  readonly countFailure: (address: string) => void;
}

/** @param perSecond tokens for each network; 0 is no limit */
export function makeNetworkLimits(perSecond: number): NetworkLimits {
  if (perSecond === 0) return { take: () => undefined, check: () => undefined, countFailure: () => undefined };
  const rate: Rate = { perSecond, burst: perSecond * BURST_SECONDS };
  const buckets = new LRUCache<string, Bucket>({ max: MAX_NETWORKS });

  const takeTokens = (address: string, tokens: number): number => {
    const network = networkOf(address);
    const now = performance.now();
    const bucket = buckets.get(network) ?? { debt: 0, at: now };
    refill(bucket, rate, now);
    buckets.set(network, bucket);
    return take(bucket, rate, tokens);
  };
  const refuse = (waitSeconds: number): void => {
    if (waitSeconds === 0) return;
    const message = `more than ${perSecond} requests a second from your network; try again in ${waitSeconds} s`;
    throw new ServiceError('rate_limit_exceeded', message, undefined, waitSeconds);
  };
  return {
    take: (address) => refuse(takeTokens(address, 1)),
    check(address) {
      const bucket = buckets.get(networkOf(address));
      if (!bucket) return;
      refill(bucket, rate, performance.now());
      // Tries to take one without keeping it.
      refuse(take({ ...bucket }, rate, 1));
    },
    countFailure: (address) => void takeTokens(address, 1),
  };
}
