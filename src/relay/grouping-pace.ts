import type { DeliveryRow, GroupRow } from '../store/outbox/outbox.ts';
import { isSingle, type Mode } from './plan.ts';

/**
 * Time between two rounds of grouping. A workflow costs about 40 ms of CPU time regardless of its size, so while emails arrive
 * faster than the rate limit, all that arrive in this time share one.
 */
const ROUND_MS = 100;
/**
 * The time after a round beside a batch, or with at least LONG_ROUND_MIN_SINGLES single emails: ten workflows a second cost 0.4 s of
 * CPU time, a fifth of what 1,000 emails take.
 */
const LONG_ROUND_MS = 300;
const LONG_ROUND_MIN_SINGLES = 50;
/**
 * The estimated time for which one email of a batch occupies the workers: 0.7 ms through Postmark, 3 ms by SMTP. Meanwhile single
 * emails share workflows, since one workflow takes as much CPU time as forty emails of the batch.
 */
const BATCH_EMAIL_MS = 2;

/** Decides when emails share workflows, from what was planned and started before. */
export class GroupingPace {
  readonly #startsPerSecond: number;
  readonly #now: () => number;
  /** The time of the next round of grouping. */
  #roundAt = -Infinity;
  /** The time until which the started batches are estimated to occupy the workers. */
  #batchesUntil = -Infinity;

  /** @param now a monotonic clock in milliseconds */
  constructor(startsPerSecond: number, now: () => number) {
    this.#startsPerSecond = startsPerSecond;
    this.#now = now;
  }

  /** Records groups whose workflows were started. */
  recordStarts(groups: readonly GroupRow[]): void {
    const now = this.#now();
    this.#batchesUntil = Math.max(this.#batchesUntil, now) + countBatchEmails(groups) * BATCH_EMAIL_MS;
  }

  /** Returns the time until the next round of grouping; negative if it has passed. */
  msUntilRound(): number {
    return this.#roundAt - this.#now();
  }

  /**
   * Chooses the mode of a plan.
   * @param rows the number of pending rows, all of which are locked
   * @param isBehind true if workers do not keep up with the workflows that were started
   */
  chooseMode(rows: number, isBehind = false): Mode {
    const msUntilRound = this.msUntilRound();
    if (msUntilRound > 0) return 'defer';
    if (isBehind || this.#isBesideBatch()) return 'group singles';
    // More rows are pending than tokens are refilled between two rounds.
    const isBurst = rows > (this.#startsPerSecond * ROUND_MS) / 1_000;
    return isBurst && msUntilRound >= -ROUND_MS ? 'group' : 'each';
  }

  /** Records a plan. After a round for single emails, the next one starts ROUND_MS or LONG_ROUND_MS later. */
  recordPlan(grouped: readonly DeliveryRow[], ownWorkflows: readonly DeliveryRow[], isBehind = false): void {
    const isBesideBatch = isBehind || this.#isBesideBatch();
    // Beside a batch, an email with its own workflow ends a round too.
    const singles = (isBesideBatch ? [...grouped, ...ownWorkflows] : grouped).filter(isSingle).length;
    if (singles === 0) return;
    const isLong = isBesideBatch || singles >= LONG_ROUND_MIN_SINGLES;
    this.#roundAt = this.#now() + (isLong ? LONG_ROUND_MS : ROUND_MS);
  }

  #isBesideBatch(): boolean {
    return this.#batchesUntil > this.#now();
  }
}

/** Counts the members of batches that workers can send immediately. */
function countBatchEmails(groups: readonly GroupRow[]): number {
  const immediate = groups.filter(({ is_bulk, due_at }) => is_bulk && due_at === null);
  return immediate.reduce((sum, { members }) => sum + members.length, 0);
}
