import type { GroupRow } from '../store/outbox/outbox.ts';
import type { StartedWorkflow } from '../store/outbox/unclaimed.ts';

/**
 * How many workflows the relay may start now. Messages that may not start one wait in the outbox, where the next round finds more of
 * them for one workflow.
 */
export interface StartCapacity {
  /** Workflows for one message each. */
  readonly own: number;
  /** Workflows for emails that share none: some also while no other email has its own, so that they are not forgotten. */
  readonly detached: number;
  /** Groups of single messages that became due just now. */
  readonly fresh: number;
  /** Groups of single messages that have waited (see `EmailRow.is_late`). */
  readonly late: number;
}

type Kind = 'own' | 'fresh' | 'late';

/** From this setting on, each message has a workflow of its own whether or not workers keep up. No Temporal starts as many a second. */
const UNLIMITED_STARTS_PER_SECOND = 10_000;
/** Workers that take longer than this from the start of a workflow to the claim of its message are behind. */
const MAX_LAG_MS = 1_000;
/** Workers that were behind have caught up when no start has been unclaimed for longer than this. */
const CAUGHT_UP_LAG_MS = 300;
/**
 * After workers have caught up, messages go on sharing workflows for this long, twice as long each time that they fall behind again soon,
 * at most MAX_HOLD_MS: without it, the relay would start 20 workflows whenever the workers are done with the last ones.
 */
const MIN_HOLD_MS = 5_000;
const MAX_HOLD_MS = 60_000;
/** A message whose own workflow has not claimed it after this time is sent by a shared one. */
const OVERDUE_MS = 3_000;
/** Groups without a claim at a time. The next ones are larger. One activity slot more than a worker has for each kind keeps it busy. */
const MAX_GROUPS: Readonly<Record<'fresh' | 'late', number>> = { fresh: 3, late: 5 };
/** While no group is claimed, one more is started after this time, and after twice the time each further one. */
const GROUP_RETRY_MS = 5_000;
/** A start that is older than this is ignored once a workflow that was started MAX_LAG_MS after it or later has claimed. */
const IGNORED_AFTER_MS = 10_000;
/** Members by whose claims the claim of a group is found. A worker claims the first ones first. */
const SAMPLE_SIZE = 3;

/** Own workflows without a claim up to which an email that shares none is started while workers are behind. */
const MAX_DETACHED = 2;

interface Start extends Omit<StartedWorkflow, 'ageMs'> {
  readonly kind: Kind;
  readonly startedAt: number;
}

/**
 * The workflows that this relay has started and no worker has claimed a message of. They decide whether a message gets a workflow of
 * its own (decision 182): it costs 30 times as much processor time as one email of a group, so it is worth its price only while workers
 * keep up. Emails have one instance, chat-app messages and SMS another, since they have workers of their own.
 */
export class UnclaimedStarts {
  /** True if each message has a workflow of its own whether or not workers keep up. */
  readonly isUnlimited: boolean;
  /** Own workflows without a claim: at most as many as may be started in a second. */
  readonly #maxOwn: number;
  readonly #now: () => number;
  readonly #starts = new Map<string, Start>();
  #lagMs = 0;
  #isBehind = false;
  #caughtUpAt = -Infinity;
  #holdMs = MIN_HOLD_MS;

  /** @param now a monotonic clock in milliseconds */
  constructor(startsPerSecond: number, now: () => number) {
    this.isUnlimited = startsPerSecond >= UNLIMITED_STARTS_PER_SECOND;
    this.#maxOwn = Math.max(1, Math.ceil(startsPerSecond));
    this.#now = now;
  }

  /** Records the start of a message's own workflow. */
  recordOwn(messageId: string): void {
    this.#record('own', messageId, [messageId]);
  }

  /** Records the starts of groups. Those of batches are paced by their size and do not count. */
  recordGroups(groups: readonly GroupRow[]): void {
    for (const { message_id, members, is_bulk, is_late, due_at } of groups) {
      if (is_bulk || (due_at !== null && !is_late)) continue;
      const sample = members.slice(0, SAMPLE_SIZE).map(({ id }) => id);
      this.#record(is_late ? 'late' : 'fresh', message_id, sample);
    }
  }

  #record(kind: Kind, workflowId: string, messageIds: readonly string[]): void {
    if (this.isUnlimited) return;
    this.#starts.set(workflowId, { kind, workflowId, messageIds, startedAt: this.#now() });
  }

  /** The workflows whose claims are to be looked up, with their age. */
  pending(): readonly StartedWorkflow[] {
    const now = this.#now();
    return [...this.#starts.values()].map((start) => ({ ...start, ageMs: now - start.startedAt }));
  }

  /** Removes workflows that have claimed a message. @param workflowIds of `pending` */
  recordClaims(workflowIds: readonly string[]): void {
    let latest = -Infinity;
    for (const id of workflowIds) {
      latest = Math.max(latest, this.#starts.get(id)?.startedAt ?? -Infinity);
      this.#starts.delete(id);
    }
    const ignoredBefore = Math.min(latest - MAX_LAG_MS, this.#now() - IGNORED_AFTER_MS);
    for (const [id, { startedAt }] of this.#starts) if (startedAt < ignoredBefore) this.#starts.delete(id);
    this.#judge();
  }

  /** The age in milliseconds of the oldest start without a claim, when claims were recorded last; 0 without one. */
  get lagMs(): number {
    return this.#lagMs;
  }

  /** True while messages share workflows because workers do not keep up, or have not for long enough. */
  get isBehind(): boolean {
    return this.#isBehind || this.#now() - this.#caughtUpAt < this.#holdMs;
  }

  /** Called when claims are recorded: between two look-ups, starts only seem to be without a claim. */
  #judge(): void {
    const now = this.#now();
    const [oldest] = this.#starts.values();
    const lagMs = oldest ? now - oldest.startedAt : 0;
    this.#lagMs = lagMs;
    if (!this.#isBehind && lagMs > MAX_LAG_MS) {
      this.#isBehind = true;
      const isSoon = now - this.#caughtUpAt < this.#holdMs + MAX_HOLD_MS;
      this.#holdMs = isSoon ? Math.min(this.#holdMs * 2, MAX_HOLD_MS) : MIN_HOLD_MS;
    } else if (this.#isBehind && lagMs <= CAUGHT_UP_LAG_MS) {
      this.#isBehind = false;
      this.#caughtUpAt = now;
    }
  }

  capacity(): StartCapacity {
    if (this.isUnlimited) return { own: Infinity, detached: Infinity, fresh: Infinity, late: Infinity };
    const unclaimed = this.#of('own').length;
    const own = this.isBehind ? 0 : Math.max(0, this.#maxOwn - unclaimed);
    const detached = Math.max(own, MAX_DETACHED - unclaimed);
    return { own, detached, fresh: this.#groups('fresh'), late: this.#groups('late') };
  }

  #groups(kind: 'fresh' | 'late'): number {
    const unclaimed = this.#of(kind);
    const free = MAX_GROUPS[kind] - unclaimed.length;
    if (free > 0) return free;
    const latest = unclaimed.at(-1)?.startedAt ?? -Infinity;
    return this.#now() - latest > Math.min(GROUP_RETRY_MS * 2 ** -free, MAX_HOLD_MS) ? 1 : 0;
  }

  /** Removes and returns the messages whose own workflows have not claimed them for long. */
  takeOverdue(limit: number): string[] {
    const before = this.#now() - OVERDUE_MS;
    const overdue = this.#of('own')
      .filter(({ startedAt }) => startedAt < before)
      .slice(0, limit);
    for (const { workflowId } of overdue) this.#starts.delete(workflowId);
    return overdue.map(({ workflowId }) => workflowId);
  }

  #of(kind: Kind): Start[] {
    return [...this.#starts.values()].filter((start) => start.kind === kind);
  }
}
