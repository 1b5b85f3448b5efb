import { performance } from 'node:perf_hooks';
import { makeSemaphore, type Release } from '../lib/semaphore.ts';
import type { Connections } from '../providers/email-provider.ts';

interface LineTimes {
  /** A call that takes longer is late: it moves to a late connection if one is free, and its delivery no longer waits for it. */
  readonly lateAfterMs: number;
  /** The delivery of a group stops waiting for a call after this time: few groups are delivered at a time. */
  readonly groupWaitMs: number;
  /** A call that takes longer hangs. */
  readonly hangingAfterMs: number;
  /** An organization is stalled if it has used up its share and none of its calls has begun or ended for this long. */
  readonly stalledAfterMs: number;
  /** The longest wait; a claim expires after 20 s. */
  readonly maxWaitMs: number;
}

const TIMES: LineTimes = {
  lateAfterMs: 30_000,
  groupWaitMs: 3_000,
  hangingAfterMs: 60_000,
  stalledAfterMs: 3_000,
  maxWaitMs: 12_000,
};

/** For a provider whose calls end by a timeout of 30 s, such as one with an HTTP API. */
const HTTP_CONNECTIONS: Connections = { usual: 100, late: 0 };
/**
 * The maximum number of waiting calls of one organization that each occupy an activity slot. Beside those in progress, they must
 * not fill the slots of a worker.
 */
const MAX_WAITING_SINGLES = 20;

/** A call to a provider, or a part of one that needs its own connection. */
export interface LineCall {
  readonly provider: { readonly name: string; readonly connections?: Connections };
  /** Undefined for a call with messages of several organizations; it counts against no share. */
  readonly orgId: string | undefined;
  /** True if a whole activity waits for it. */
  readonly isSingle: boolean;
  /** Called when its delivery should no longer wait for it; possibly twice. */
  readonly onLate?: () => void;
  /** Called when it hangs and with it at least as many calls of its organization as the organization has a share. */
  readonly onHanging?: () => void;
}

/** The calls of this process to a provider. Those on late connections are not among `running`. */
interface LineCounts {
  readonly provider: string;
  readonly running: number;
  readonly late: number;
  readonly waiting: number;
}

/**
 * Limits the concurrent provider calls of this process, with a share for each organization: a third of a provider's connections
 * beside others, three quarters while no other organization uses any.
 */
export interface ProviderLine {
  /** Makes a call once it has a connection. @returns undefined if it got none in time and was not made */
  readonly run: <T>(call: LineCall, work: () => Promise<T>) => Promise<T | undefined>;
  /**
   * Returns how long no call of an organization has begun or ended, if another one would get no connection now, nor by waiting;
   * otherwise 0. In milliseconds.
   */
  readonly stalledForMs: (call: Pick<LineCall, 'provider' | 'orgId'>) => number;
  /** Registers a call that outlasts its delivery. */
  readonly keep: (call: Promise<unknown>) => void;
  /** Waits until the registered calls have ended. */
  readonly end: () => Promise<void>;
  readonly counts: () => LineCounts[];
}

export function makeProviderLine(times: Partial<LineTimes> = {}): ProviderLine {
  const lanes = new Map<string, Lane>();
  const kept = new Set<Promise<unknown>>();

  function laneOf({ name, connections = HTTP_CONNECTIONS }: LineCall['provider']): Lane {
    const lane = lanes.get(name) ?? new Lane(connections, { ...TIMES, ...times });
    lanes.set(name, lane);
    return lane;
  }

  return {
    run: (call, work) => laneOf(call.provider).run(call, work),
    stalledForMs: ({ provider, orgId }) => laneOf(provider).stalledForMs(orgId),
    keep(call) {
      const ended = call.catch(() => undefined).finally(() => kept.delete(ended));
      kept.add(ended);
    },
    async end() {
      while (kept.size > 0) await Promise.all(kept);
    },
    counts: () => [...lanes].map(([provider, lane]) => ({ provider, ...lane.counts() })),
  };
}

/** The calls of one organization to a provider. */
interface Holder {
  calls: number;
  /** Those of them that wait for a connection. */
  waiting: number;
  waitingSingles: number;
  hanging: number;
  /** When one of its calls last began or ended. Milliseconds of the monotonic clock. */
  progressAt: number;
}

const shareOf = (connections: number): number => Math.max(1, Math.floor(connections / 3));

/** The line of one provider. */
class Lane {
  readonly #times: LineTimes;
  readonly #share: number;
  readonly #usual: ReturnType<typeof makeSemaphore>;
  readonly #late: ReturnType<typeof makeSemaphore>;
  readonly #holders = new Map<string | undefined, Holder>();
  #lateCount = 0;

  constructor({ usual, late }: Connections, times: LineTimes) {
    this.#times = times;
    this.#share = shareOf(usual);
    this.#usual = makeSemaphore(usual, this.#share, Math.max(1, Math.floor((usual * 3) / 4)));
    this.#late = makeSemaphore(late, shareOf(late));
  }

  async run<T>(call: LineCall, work: () => Promise<T>): Promise<T | undefined> {
    const holder = this.#holderOf(call.orgId);
    holder.calls++;
    try {
      const release = this.#usual.tryTake(1, call.orgId) ?? (await this.#wait(call, holder));
      return release && (await this.#watch(call, holder, release, work));
    } finally {
      holder.calls--;
      if (holder.calls === 0) this.#holders.delete(call.orgId);
    }
  }

  stalledForMs(orgId: string | undefined): number {
    const ageMs = performance.now() - (this.#holders.get(orgId)?.progressAt ?? Infinity);
    if (ageMs < this.#times.stalledAfterMs) return 0;
    const release = this.#usual.tryTake(1, orgId);
    release?.();
    return release ? 0 : ageMs;
  }

  counts(): Omit<LineCounts, 'provider'> {
    const sum = (key: 'calls' | 'waiting') => [...this.#holders.values()].reduce((total, each) => total + each[key], 0);
    const waiting = sum('waiting');
    return { running: sum('calls') - waiting - this.#lateCount, late: this.#lateCount, waiting };
  }

  #holderOf(orgId: string | undefined): Holder {
    const none = { calls: 0, waiting: 0, waitingSingles: 0, hanging: 0, progressAt: performance.now() };
    const holder = this.#holders.get(orgId) ?? none;
    this.#holders.set(orgId, holder);
    return holder;
  }

  /** Waits while calls of the organization begin and end. @returns undefined if it got no connection */
  async #wait({ orgId, isSingle }: LineCall, holder: Holder): Promise<Release | undefined> {
    const single = isSingle ? 1 : 0;
    if (holder.waitingSingles + single > MAX_WAITING_SINGLES) return undefined;
    const stopped = new AbortController();
    const deadline = performance.now() + this.#times.maxWaitMs;
    let timer: NodeJS.Timeout | undefined;
    const check = (): void => {
      const leftMs = Math.min(deadline, holder.progressAt + this.#times.stalledAfterMs) - performance.now();
      if (leftMs <= 0) stopped.abort();
      else timer = setTimeout(check, leftMs);
    };
    check();
    holder.waiting++;
    holder.waitingSingles += single;
    try {
      return await this.#usual.take(1, { signal: stopped.signal, holder: orgId });
    } catch {
      return undefined;
    } finally {
      clearTimeout(timer);
      holder.waiting--;
      holder.waitingSingles -= single;
    }
  }

  /** Makes a call that has a connection. */
  async #watch<T>(call: LineCall, holder: Holder, usual: Release, work: () => Promise<T>): Promise<T> {
    const ended = new AbortController();
    const connection = { release: usual };
    const { lateAfterMs, groupWaitMs, hangingAfterMs } = this.#times;
    const onLate = (): void => {
      call.onLate?.();
      void this.#moveToLate(call, holder, connection, ended.signal);
    };
    let hanging = 0;
    const onHanging = (): void => {
      hanging = 1;
      holder.hanging++;
      if (holder.hanging >= this.#share) call.onHanging?.();
    };
    const timers = [
      setTimeout(onLate, lateAfterMs),
      setTimeout(onHanging, hangingAfterMs),
      ...(call.isSingle ? [] : [setTimeout(() => call.onLate?.(), groupWaitMs)]),
    ];
    holder.progressAt = performance.now();
    try {
      return await work();
    } finally {
      ended.abort();
      timers.forEach(clearTimeout);
      holder.hanging -= hanging;
      holder.progressAt = performance.now();
      connection.release();
    }
  }

  async #moveToLate({ orgId }: LineCall, holder: Holder, connection: { release: Release }, ended: AbortSignal) {
    const late = await this.#late.take(1, { signal: ended, holder: orgId }).catch(() => undefined);
    if (!late) return;
    if (ended.aborted) {
      late();
      return;
    }
    connection.release();
    holder.progressAt = performance.now();
    this.#lateCount++;
    connection.release = () => {
      this.#lateCount--;
      late();
    };
  }
}
