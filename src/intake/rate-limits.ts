import { ServiceError } from '../domain/errors.ts';
import { startLoop } from '../lib/background-loop.ts';
import { type Bucket, type Rate, refill, type BucketState, bucketState, take } from '../lib/token-bucket.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { type BucketName, exchangeUsage, type ProcessUsage } from '../store/limits/rate-usage.ts';

/** Capacities of the buckets in seconds of the rate. The capacity for emails allows batches. */
const BURST_SECONDS: Readonly<Record<BucketName, number>> = { requests: 2, mails: 20, domains: 100 };
/** The interval of exchanges with the other processes through the database. */
const EXCHANGE_INTERVAL_MS = 200;
/**
 * If the last exchange is older, tokens that this process has refilled are not reported, because the database has refilled them
 * too.
 */
const STALE_AFTER_MS = 1_000;
/** Buckets per statement. */
const BUCKETS_PER_STATEMENT = 1_000;

const BUCKET_LABELS: Readonly<Record<BucketName, string>> = {
  requests: 'requests',
  mails: 'emails',
  domains: 'domain registrations and checks',
};

/** A request exceeded a rate limit. */
export class RateLimitExceeded extends ServiceError {
  /** The state of its bucket; null for `domains`, which responses do not report. */
  readonly state: BucketState | null;

  constructor(bucket: BucketName, { perSecond }: Rate, state: BucketState, retryAfterSeconds: number) {
    const message = `more than ${perSecond} ${BUCKET_LABELS[bucket]} a second; try again in ${retryAfterSeconds} s`;
    super('rate_limit_exceeded', message, undefined, retryAfterSeconds);
    this.state = bucket === 'domains' ? null : state;
  }
}

/** The token buckets of all organizations for one kind of operation. No method waits for the database. */
export interface RateLimit {
  readonly rate: Rate;
  /**
   * Takes tokens from an organization's bucket.
   * @throws RateLimitExceeded if the bucket has too few tokens; then none is taken
   */
  readonly take: (orgId: string, tokens: number) => void;
  /** Returns the tokens of a failed operation. */
  readonly refund: (orgId: string, tokens: number) => void;
  readonly state: (orgId: string) => BucketState;
}

/** Null means no limit. */
export interface RateLimits {
  readonly requests: RateLimit | null;
  /** An email takes one token, a marketing email one per recipient. */
  readonly mails: RateLimit | null;
  /** A registration or check of a domain costs a key pair, DNS queries or calls to the provider. */
  readonly domains: RateLimit | null;
}

/** The state of a bucket in this process. */
interface LocalBucket extends Bucket {
  /** Tokens taken since the last exchange. */
  unreported: number;
  /** True if tokens were requested since the last exchange, even without success. */
  isRequested: boolean;
}

type Buckets = RateLimit & {
  readonly name: BucketName;
  /** Returns the usage to report. Removes buckets that are full and unused. */
  readonly collectUsage: () => ProcessUsage[];
  /** Sets the bucket's usage to that of all processes, after an exchange. */
  readonly setTotal: (orgId: string, usage: number) => void;
  /** Restores usage whose report failed. */
  readonly restore: (usage: ProcessUsage) => void;
};

/**
 * Starts rate limits that are shared by all processes. Each process decides locally. Every 200 ms it adds its usage to the
 * database and reads that of all processes. Between two exchanges processes may together exceed the limit: each further process
 * by what it admits in 200 ms, at most one full bucket. The excess is deducted from later tokens. While the database is
 * unreachable, each process limits on its own.
 * @param perSecond tokens per organization; 0 or undefined means no limit
 * @param onError called for the first of consecutive failures; the exchanges continue
 * @returns the limits, and a function that stops the exchanges after a last one
 */
export function startRateLimits(
  pool: Pool,
  perSecond: Readonly<Partial<Record<BucketName, number>>>,
  onError: (error: unknown) => void,
): RateLimits & { readonly stop: () => Promise<void> } {
  const startLimit = (name: BucketName) => {
    const rate = perSecond[name] ?? 0;
    return rate > 0 ? makeBuckets(name, rate) : null;
  };
  const limits = { requests: startLimit('requests'), mails: startLimit('mails'), domains: startLimit('domains') };
  const enabled = [limits.requests, limits.mails, limits.domains].filter((each) => each !== null);
  const byName = new Map(enabled.map((each) => [each.name, each]));

  const exchange = async (): Promise<void> => {
    const usages = enabled.flatMap((each) => each.collectUsage());
    for (let from = 0; from < usages.length; from += BUCKETS_PER_STATEMENT) {
      const chunk = usages.slice(from, from + BUCKETS_PER_STATEMENT);
      try {
        const totals = await exchangeUsage(pool, chunk, perSecond);
        for (const { bucket, org_id, usage } of totals) byName.get(bucket)?.setTotal(org_id, usage);
      } catch (error) {
        for (const each of usages.slice(from)) byName.get(each.bucket)?.restore(each);
        throw error;
      }
    }
  };
  const stopLoop = startLoop(EXCHANGE_INTERVAL_MS, exchange, onError);
  return {
    ...limits,
    async stop() {
      await stopLoop();
      await exchange().catch(onError);
    },
  };
}

function makeBuckets(name: BucketName, perSecond: number): Buckets {
  const rate: Rate = { perSecond, burst: perSecond * BURST_SECONDS[name] };
  const buckets = new Map<string, LocalBucket>();
  let exchangedAt = performance.now();

  const bucketOf = (orgId: string): LocalBucket => {
    const now = performance.now();
    const existing = buckets.get(orgId);
    if (existing) {
      refill(existing, rate, now);
      return existing;
    }
    const newBucket = { usage: 0, atMs: now, unreported: 0, isRequested: false };
    buckets.set(orgId, newBucket);
    return newBucket;
  };

  return {
    name,
    rate,
    take(orgId, tokens) {
      const bucket = bucketOf(orgId);
      bucket.isRequested = true;
      const waitSeconds = take(bucket, rate, tokens);
      if (waitSeconds > 0) throw new RateLimitExceeded(name, rate, bucketState(bucket, rate), waitSeconds);
      bucket.unreported += tokens;
    },
    refund(orgId, tokens) {
      const bucket = bucketOf(orgId);
      bucket.usage = Math.max(0, bucket.usage - tokens);
      bucket.unreported -= tokens;
    },
    state: (orgId) => bucketState(bucketOf(orgId), rate),

    collectUsage() {
      const isStale = performance.now() - exchangedAt > STALE_AFTER_MS;
      const usages: ProcessUsage[] = [];
      for (const orgId of [...buckets.keys()]) {
        const bucket = bucketOf(orgId);
        if (isStale) bucket.unreported = Math.min(bucket.unreported, bucket.usage);
        if (!bucket.isRequested && bucket.unreported === 0) {
          if (bucket.usage === 0) buckets.delete(orgId);
          continue;
        }
        usages.push({ org_id: orgId, bucket: name, spent: bucket.unreported });
        bucket.unreported = 0;
        bucket.isRequested = false;
      }
      if (usages.length === 0) exchangedAt = performance.now();
      return usages;
    },
    setTotal(orgId, usage) {
      exchangedAt = performance.now();
      const bucket = bucketOf(orgId);
      bucket.usage = Math.max(0, usage + bucket.unreported);
    },
    restore({ org_id: orgId, spent }) {
      const bucket = bucketOf(orgId);
      bucket.unreported += spent;
      bucket.isRequested = true;
    },
  };
}
