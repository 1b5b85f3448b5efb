import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceError } from '../domain/errors.ts';
import { type Bucket, type Rate, refill, type Standing, standing, take } from '../lib/token-bucket.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { type BucketName, exchangeDebts, type Spending } from '../store/limits/rate-usage.ts';

/** Bursts in seconds of the rate. Batches are bursts. */
const SAVED: Readonly<Record<BucketName, number>> = { requests: 2, mails: 20, domains: 100 };
/** Time between two exchanges with the other processes. */
const EXCHANGE_EVERY = 200;
/** Time since the last exchange after which refills in this process are not reported: the database has refilled too. */
const STALE = 1_000;
/** Buckets per statement. */
const AT_ONCE = 1_000;

const WHAT: Readonly<Record<BucketName, string>> = {
  requests: 'requests',
  mails: 'emails',
  domains: 'domain registrations and checks',
};

/** `standing` is the state of the bucket that refused the request. */
export class RateLimitExceeded extends ServiceError {
  readonly standing: Standing;

  constructor(bucket: BucketName, { perSecond }: Rate, now: Standing, retryAfter: number) {
    const message = `more than ${perSecond} ${WHAT[bucket]} a second; try again in ${retryAfter} s`;
    super('rate_limit_exceeded', message, undefined, retryAfter);
    this.standing = now;
  }
}

/** The token buckets of all organizations for one kind of operation. No method waits for the database. */
export interface RateLimit {
  readonly rate: Rate;
  /**
   * Takes tokens from an organization's bucket.
   * @throws RateLimitExceeded when there are too few; then none is taken
   */
  readonly take: (orgId: string, tokens: number) => void;
  /** Returns tokens of an operation that did not take place. */
  readonly giveBack: (orgId: string, tokens: number) => void;
  readonly standing: (orgId: string) => Standing;
}

/** Null means no limit. */
export interface RateLimits {
  readonly requests: RateLimit | null;
  /** A batch takes one token per email. */
  readonly mails: RateLimit | null;
  /** Registrations and checks of domains cost a key pair, DNS queries or calls to the provider. */
  readonly domains: RateLimit | null;
}

/** The state of a bucket in this process. */
interface LocalBucket extends Bucket {
  /** Tokens taken since the last exchange. */
  unsaid: number;
  /** True if tokens were requested since the last exchange, also without success. */
  asked: boolean;
}

type Buckets = RateLimit & {
  readonly name: BucketName;
  /** Returns the usage to report. Buckets that are full and unused are removed. */
  readonly collect: () => Spending[];
  /** Sets the usage of all processes after an exchange. */
  readonly settle: (orgId: string, debt: number) => void;
  /** Restores usage that could not be reported. */
  readonly keep: (spending: Spending) => void;
};

/**
 * Starts rate limits that processes share. Each process decides locally, and every 200 ms adds its usage to the database and
 * reads that of all processes. Between two exchanges another process may admit requests beyond the limit: at most what it
 * admits in 200 ms, and at most one full bucket for each process beyond the first. The excess is deducted from later tokens.
 * While the database is unreachable each process limits on its own.
 * @param perSecond tokens per organization; 0 or undefined means no limit
 * @param onError called for the first of consecutive failures; the exchanges continue
 * @returns the limits, and a function that stops the exchanges after a last one
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
