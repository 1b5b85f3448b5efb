import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceError } from '../domain/errors.ts';
import { type Bucket, type Rate, refill, type Standing, standing, take } from '../lib/token-bucket.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { type BucketName, exchangeDebts, type Spending } from '../store/limits/rate-usage.ts';

/** Seconds of income that an organization may save up: bursts are welcome, and batches are bursts by nature. */
const SAVED: Readonly<Record<BucketName, number>> = { requests: 2, mails: 20, domains: 100 };
/** Milliseconds between two exchanges with the other processes. */
const EXCHANGE_EVERY = 200;
/** Milliseconds since the last exchange after which what flowed back here meanwhile is not told any more. */
const STALE = 1_000;
/** Buckets per statement. */
const AT_ONCE = 1_000;

const WHAT: Readonly<Record<BucketName, string>> = {
  requests: 'requests',
  mails: 'emails',
  domains: 'domain registrations and checks',
};

/** A request came too soon; `standing` is where the bucket that refused it stands. */
export class RateLimitExceeded extends ServiceError {
  readonly standing: Standing;

  constructor(bucket: BucketName, { perSecond }: Rate, now: Standing, retryAfter: number) {
    const message = `more than ${perSecond} ${WHAT[bucket]} a second; try again in ${retryAfter} s`;
    super('rate_limit_exceeded', message, undefined, retryAfter);
    this.standing = now;
  }
}

/** The token buckets of all organizations for one kind of thing. Nothing here waits for the database. */
export interface RateLimit {
  readonly rate: Rate;
  /**
   * Takes tokens out of an organization's bucket.
   * @throws RateLimitExceeded when they are not there; then nothing is taken
   */
  readonly take: (orgId: string, tokens: number) => void;
  /** Puts back what was taken for something that did not happen. */
  readonly giveBack: (orgId: string, tokens: number) => void;
  readonly standing: (orgId: string) => Standing;
}

/** The rates that are limited; null is not. */
export interface RateLimits {
  readonly requests: RateLimit | null;
  /** A batch takes as many tokens as it has emails. */
  readonly mails: RateLimit | null;
  /** Registrations and checks of domains: each costs a key pair, DNS queries or calls to the provider. */
  readonly domains: RateLimit | null;
}

/** A bucket as this process sees it. */
interface LocalBucket extends Bucket {
  /** Tokens taken that the other processes do not know of yet. */
  unsaid: number;
  /** Whether anybody asked for tokens since the last exchange, in vain or not. */
  asked: boolean;
}

type Buckets = RateLimit & {
  readonly name: BucketName;
  /** What the other processes should know; who was not asked for and is full is forgotten. */
  readonly collect: () => Spending[];
  /** The other processes know it, and this is what all of them have taken. */
  readonly settle: (orgId: string, debt: number) => void;
  /** They could not be told. */
  readonly keep: (spending: Spending) => void;
};

/**
 * Limits that processes share: each decides from what it knows, at once, and every 200 ms tells the database what it let
 * through and learns what all have. Between two exchanges another process may let through what this one has just
 * taken: at most what it takes in 200 ms, and at most one full bucket for each process beyond the first. That is owed, and
 * nothing passes until it has flowed back. While the database is away each process limits by itself.
 * @param perSecond tokens for each organization; 0 or none is no limit
 * @param onError told of the first of the exchanges that fail one after the other; the next one comes all the same
 * @returns the limits, and a function that ends the exchanges with a last one
 */
export function startRateLimits(
  pool: Pool,
  perSecond: Readonly<Partial<Record<BucketName, number>>>,
  onError: (error: unknown) => void,
): RateLimits & { readonly stop: () => Promise<void> } {
  const make = (name: BucketName) => {
    const rate = perSecond[name] ?? 0;
    return rate > 0 ? makeBuckets(name, rate) : null;
  };
  const limits = { requests: make('requests'), mails: make('mails'), domains: make('domains') };
  const on = [limits.requests, limits.mails, limits.domains].filter((each) => each !== null);
  const byName = new Map(on.map((each) => [each.name, each]));

  const exchange = async (): Promise<void> => {
    const spendings = on.flatMap((each) => each.collect());
    for (let from = 0; from < spendings.length; from += AT_ONCE) {
      const told = spendings.slice(from, from + AT_ONCE);
      try {
        const debts = await exchangeDebts(pool, told, perSecond);
        for (const { bucket, org_id, debt } of debts) byName.get(bucket)?.settle(org_id, debt);
      } catch (error) {
        for (const each of spendings.slice(from)) byName.get(each.bucket)?.keep(each);
        throw error;
      }
    }
  };
  const ending = new AbortController();
  const running = (async () => {
    for (let failures = 0; !ending.signal.aborted;) {
      await sleep(EXCHANGE_EVERY, undefined, { signal: ending.signal }).catch(() => undefined);
      try {
        await exchange();
        failures = 0;
      } catch (error) {
        if (failures++ === 0) onError(error);
      }
    }
  })();
  return {
    ...limits,
    stop: () => {
      ending.abort();
      return running;
    },
  };
}

function makeBuckets(name: BucketName, perSecond: number): Buckets {
  const rate: Rate = { perSecond, burst: perSecond * SAVED[name] };
  const buckets = new Map<string, LocalBucket>();
  let exchanged = performance.now();

  const bucketOf = (orgId: string): LocalBucket => {
    const now = performance.now();
    const known = buckets.get(orgId);
    if (known) {
      refill(known, rate, now);
      return known;
    }
    const full = { debt: 0, at: now, unsaid: 0, asked: false };
    buckets.set(orgId, full);
    return full;
  };

  return {
    name,
    rate,
    take(orgId, tokens) {
      const bucket = bucketOf(orgId);
      bucket.asked = true;
      const wait = take(bucket, rate, tokens);
      if (wait > 0) throw new RateLimitExceeded(name, rate, standing(bucket, rate), wait);
      bucket.unsaid += tokens;
    },
    giveBack(orgId, tokens) {
      const bucket = bucketOf(orgId);
      bucket.debt = Math.max(0, bucket.debt - tokens);
      bucket.unsaid -= tokens;
    },
    standing: (orgId) => standing(bucketOf(orgId), rate),

    collect() {
      const isStale = performance.now() - exchanged > STALE;
      const spendings: Spending[] = [];
      for (const orgId of [...buckets.keys()]) {
        const bucket = bucketOf(orgId);
        if (isStale) bucket.unsaid = Math.min(bucket.unsaid, bucket.debt);
        if (!bucket.asked && bucket.unsaid === 0) {
          if (bucket.debt === 0) buckets.delete(orgId);
          continue;
        }
        spendings.push({ org_id: orgId, bucket: name, spent: bucket.unsaid });
        bucket.unsaid = 0;
        bucket.asked = false;
      }
      if (spendings.length === 0) exchanged = performance.now();
      return spendings;
    },
    settle(orgId, debt) {
      exchanged = performance.now();
      const bucket = bucketOf(orgId);
      bucket.debt = Math.max(0, debt + bucket.unsaid);
    },
    keep({ org_id: orgId, spent }) {
      const bucket = bucketOf(orgId);
      bucket.unsaid += spent;
      bucket.asked = true;
    },
  };
}
