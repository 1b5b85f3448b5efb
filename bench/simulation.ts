import { GROUP_SIZE } from '../src/domain/limits.ts';
import { quantile } from './figures.ts';

/** Microseconds of CPU time of one email per part. */
export type Cost = Readonly<Record<Part, number>>;
const PARTS = ['api', 'postgres', 'worker', 'temporal', 'simulator', 'load'] as const;
type Part = (typeof PARTS)[number];

/** A value for each part. */
export function byPart<T>(value: (part: Part) => T): Record<Part, T> {
  return Object.fromEntries(PARTS.map((part) => [part, value(part)])) as Record<Part, T>;
}

/** CPU time of an email: until the 202, until the provider has accepted it, and for the provider's report. */
export interface Costs {
  readonly accepting: Cost;
  readonly sending: Cost;
  readonly reporting: Cost;
}

export interface Plan {
  /** Emails per second, at random times. */
  readonly rate: number;
  readonly seconds: number;
  /** Processors per part, or one number of processors that all parts share. */
  readonly processors: number | Cost;
  /** Worker processes, each of which sends 4 groups at a time. */
  readonly workers: number;
  /** Milliseconds of a call to the provider, with up to 500 emails. */
  readonly latency: number;
}

interface Simulated {
  /** Milliseconds until emails were accepted and sent. */
  readonly accepted: readonly number[];
  readonly sent: readonly number[];
  /** Emails that are pending at the end. */
  readonly waiting: number;
  /** The share of its processors that each part used. */
  readonly busy: Cost;
}

const GROUPS_PER_WORKER = 4;
/** The time between two rounds of the relay that have at least 50 single emails each. */
const RELAY_INTERVAL_MS = 300;
/** The time from the provider's acceptance of an email to its report. */
const REPORT_DELAY_MS = 1_000;
const STEP_US = 1_000;

interface Job {
  left: number;
  readonly done: (now: number) => void;
}

/** Processors that run jobs in FIFO order, each processor one at a time. */
class Processors {
  readonly #waiting = new Queue<Job>();
  readonly #running: (Job | undefined)[];
  readonly #count: number;

  constructor(count: number) {
    this.#count = count;
    this.#running = Array.from({ length: Math.ceil(count) });
  }

  add(left: number, done: (now: number) => void): void {
    this.#waiting.push({ left, done });
  }

  step(now: number): void {
    for (const index of this.#running.keys()) {
      let left = STEP_US * Math.min(1, this.#count - index);
      for (;;) {
        const job = this.#running[index] ?? this.#waiting.shift();
        if (!job) break;
        const used = Math.min(left, job.left);
        job.left -= used;
        left -= used;
        this.#running[index] = job.left > 0 ? job : undefined;
        if (job.left > 0) break;
        job.done(now);
      }
    }
  }
}

/** A FIFO queue whose operations take amortized constant time. */
class Queue<T> {
  #in: T[] = [];
  #out: T[] = [];

  push(item: T): void {
    this.#in.push(item);
  }

  shift(): T | undefined {
    if (this.#out.length === 0) [this.#out, this.#in] = [this.#in.toReversed(), []];
    return this.#out.pop();
  }

  get size(): number {
    return this.#in.length + this.#out.length;
  }
}

/**
 * Simulates single emails at a rate in steps of a millisecond. Each request and report takes CPU time of the API and
 * Postgres; every RELAY_INTERVAL_MS the relay groups pending emails; a worker process sends four groups concurrently.
 */
export function simulate(costs: Costs, plan: Plan): Simulated {
  const shared = typeof plan.processors === 'number' ? new Processors(plan.processors) : undefined;
  const count = (part: Part) => (typeof plan.processors === 'number' ? plan.processors : plan.processors[part]);
  const parts = byPart((part) => shared ?? new Processors(count(part)));
  const used = byPart(() => 0);
  /** Adds the CPU time of emails in one part, then calls `done`. */
  const work = (part: Part, cost: Cost, emails: number, done: (now: number) => void) => {
    const time = cost[part] * (emails === 1 ? -Math.log(1 - Math.random()) : emails);
    used[part] += time;
    parts[part].add(time, done);
  };
  const later = new Map<number, (() => void)[]>();
  const after = (now: number, then: () => void) => {
    const at = Math.ceil(now);
    later.set(at, [...(later.get(at) ?? []), then]);
  };

  const outcome = { accepted: [] as number[], sent: [] as number[] };
  const accepted = new Queue<number>();
  const groups = new Queue<number[]>();
  let slots = plan.workers * GROUPS_PER_WORKER;
  let arrived = 0;

  const accept = (at: number) => {
    work('load', costs.accepting, 1, () => undefined);
    work('api', costs.accepting, 1, () => {
      work('postgres', costs.accepting, 1, (now) => {
        outcome.accepted.push(now - at);
        accepted.push(at);
      });
    });
  };
  const formGroups = () => {
    while (accepted.size > 0) {
      const group: number[] = [];
      while (group.length < GROUP_SIZE && accepted.size > 0) group.push(accepted.shift() as number);
      work('api', costs.sending, group.length, () => {
        work('temporal', costs.sending, group.length, () => {
          groups.push(group);
        });
      });
    }
  };
  const send = (group: number[]) => {
    work('postgres', costs.sending, group.length, () => {
      work('worker', costs.sending, group.length, (called) => {
        work('simulator', costs.sending, group.length, () => undefined);
        after(called + plan.latency, () => {
          slots++;
          for (const at of group) outcome.sent.push(called + plan.latency - at);
          after(called + plan.latency + REPORT_DELAY_MS, () => {
            for (let n = 0; n < group.length; n++) report();
          });
        });
      });
    });
  };
  const report = () => {
    for (const part of PARTS) work(part, costs.reporting, 1, () => undefined);
  };

  for (let now = 0, next = 0; now < plan.seconds * 1_000; now++) {
    for (; next <= now; next -= (Math.log(1 - Math.random()) * 1_000) / plan.rate) {
      accept(next);
      arrived++;
    }
    if (now % RELAY_INTERVAL_MS === 0) formGroups();
    for (; slots > 0 && groups.size > 0; slots--) send(groups.shift() ?? []);
    for (const then of later.get(now) ?? []) then();
    later.delete(now);
    for (const each of new Set(Object.values(parts))) each.step(now);
  }
  return {
    ...outcome,
    waiting: arrived - outcome.sent.length,
    busy: byPart((part) => used[part] / (plan.seconds * 1_000_000 * count(part))),
  };
}

/** Returns the columns of the results. */
export function summary({ accepted, sent, waiting, busy }: Simulated) {
  return {
    '202 p50 ms': quantile(accepted, 0.5),
    '202 p99 ms': quantile(accepted, 0.99),
    'sent p50 ms': quantile(sent, 0.5),
    'sent p99 ms': quantile(sent, 0.99),
    waiting,
    ...Object.fromEntries(Object.entries(busy).map(([part, share]) => [`${part} %`, share * 100])),
  };
}
