import { ServiceError } from '../domain/errors.ts';
import { networkOf } from '../lib/ip-ranges.ts';
import { makeKeyedBuckets } from './keyed-buckets.ts';

/** The capacity of a network's bucket, in seconds of its rate. */
const BURST_SECONDS = 5;

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
  const buckets = makeKeyedBuckets({ perSecond, burst: perSecond * BURST_SECONDS });
  const refuse = (waitSeconds: number): void => {
    if (waitSeconds === 0) return;
    const message = `more than ${perSecond} requests a second from your network; try again in ${waitSeconds} s`;
    throw new ServiceError('rate_limit_exceeded', message, undefined, waitSeconds);
  };
  return {
    take: (address) => refuse(buckets.take(networkOf(address))),
    check: (address) => refuse(buckets.check(networkOf(address))),
    countFailure: (address) => void buckets.take(networkOf(address)),
  };
}
