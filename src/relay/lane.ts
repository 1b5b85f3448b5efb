import { GROUP_SIZE } from '../domain/limits.ts';
import { chunksOf, groupBy } from '../lib/group.ts';
import { newId } from '../lib/ids.ts';
import {
  type DeliveryRow,
  type GroupMember,
  groupOutboxRows,
  type GroupRow,
  lockEmailRows,
  lockLateSingles,
  lockMessageRows,
  type MessageTable,
} from '../store/outbox/outbox.ts';
import { findClaimed, findUnclaimed } from '../store/outbox/unclaimed.ts';
import type { Db, Pool } from '../store/postgres/pool.ts';
import { GroupingPace } from './grouping-pace.ts';
import { needsToken, plan, type PlannedGroup } from './plan.ts';
import type { TemporalUnreachable } from './errors.ts';
import { makeStartLimit, type StartLimit } from './start-limit.ts';
import { UnclaimedStarts } from './unclaimed-starts.ts';

/** Rows locked together when they may have to be grouped. */
const MAX_PLANNED_ROWS = 2_000;
/** If more rows are pending than are locked, so many of the latest (about half a second) are searched for single emails. */
const LATE_ROWS = 500;
/** Rows dispatched together; also the number of concurrent calls to Temporal. */
export const MAX_DISPATCHED_ROWS = 100;
/** While messages wait until more workflows are claimed, claims are looked up this often. */
const CLAIMS_INTERVAL_MS = 100;
/** Messages whose own workflows have not claimed them are looked up this often. */
const UNCLAIMED_INTERVAL_MS = 1_000;

/** When to poll again: immediately, at the next `wake` or after the poll interval, or after so many milliseconds. */
export type Next = 'immediately' | 'wait' | number;

/** Locked rows. `isFull` if others may be left. */
interface PendingRows {
  readonly rows: DeliveryRow[];
  readonly isFull: boolean;
}

/**
 * What passes through the outbox for one table: emails, or chat-app messages and SMS. Each has its own rate limit of workflow starts and
 * its own view of how workers keep up, so that neither takes anything from the other.
 */
export class Lane {
  /** Its rows, among the kinds in the outbox. */
  readonly kind: 'emails' | 'messages';
  readonly unclaimed: UnclaimedStarts;
  readonly #table: MessageTable;
  readonly #bucket: StartLimit;
  readonly #grouping: GroupingPace;
  readonly #now: () => number;
  #lookUpUnclaimedAt = -Infinity;

  /** @param now a monotonic clock in milliseconds */
  constructor(table: MessageTable, startsPerSecond: number, now: () => number) {
    this.kind = table === 'emails' ? 'emails' : 'messages';
    this.#table = table;
    this.#now = now;
    this.#bucket = makeStartLimit(startsPerSecond, now);
    this.#grouping = new GroupingPace(startsPerSecond, now);
    this.unclaimed = new UnclaimedStarts(startsPerSecond, now);
  }

  /** Looks up what workers have claimed, and shares what they should have. */
  async observeWorkers(pool: Pool): Promise<void> {
    const pending = this.unclaimed.pending();
    this.unclaimed.recordClaims(pending.length > 0 ? await findClaimed(pool, pending, this.#table) : []);
    if (this.#now() < this.#lookUpUnclaimedAt) return;
    this.#lookUpUnclaimedAt = this.#now() + UNCLAIMED_INTERVAL_MS;
    await this.#shareUnclaimed(pool);
  }

  /** Records groups whose workflows were started; of those of the other table, nothing. */
  recordStarts(groups: readonly GroupRow[]): void {
    const own = groups.filter(({ channel }) => (channel === 'email') === (this.#table === 'emails'));
    this.#grouping.recordStarts(own);
    this.unclaimed.recordGroups(own);
  }

  /**
   * Locks pending rows and dispatches or groups them.
   * @param dispatch dispatches rows; returns the error if Temporal is unreachable
   */
  async poll(
    client: Db,
    isPending: boolean,
    dispatch: (rows: readonly DeliveryRow[]) => Promise<TemporalUnreachable | undefined>,
  ): Promise<Next | TemporalUnreachable> {
    const { isBehind } = this.unclaimed;
    const tokens = this.#bucket.available();
    const { rows, isFull } = isPending ? await this.#lock(client, tokens) : { rows: [], isFull: false };
    const msUntilRound = this.#grouping.msUntilRound();
    const { alone, groups, deferred } = plan(
      rows,
      tokens,
      isFull ? 'each' : this.#grouping.chooseMode(rows.length, isBehind),
      this.unclaimed.capacity(),
    );
    const dispatched = alone.slice(0, MAX_DISPATCHED_ROWS);
    const ownWorkflows = dispatched.filter(needsToken);
    this.#bucket.take(groups.length + ownWorkflows.length);
    for (const { message_id: id } of ownWorkflows) this.unclaimed.recordOwn(id);
    const unreachable = await dispatch(dispatched);
    if (groups.length > 0) await this.#insertGroups(client, groups.map(toSharing));
    this.#grouping.recordPlan(
      groups.flatMap((group) => group.rows),
      ownWorkflows,
      isBehind,
    );
    if (unreachable) return unreachable;
    if (groups.length > 0 || alone.length > MAX_DISPATCHED_ROWS) return 'immediately';
    if (deferred > 0) return Math.max(this.#bucket.msUntilNext(), msUntilRound, isBehind ? CLAIMS_INTERVAL_MS : 0, 0);
    return isFull ? 'immediately' : 'wait';
  }

  async #lock(client: Db, tokens: number): Promise<PendingRows> {
    // With a token for each of the oldest rows that can be dispatched together, no further ones are locked.
    const limit = tokens < MAX_DISPATCHED_ROWS ? MAX_PLANNED_ROWS : MAX_DISPATCHED_ROWS;
    return this.#table === 'emails' ? lockEmails(client, limit) : lockMessages(client, limit);
  }

  /**
   * Lets messages share workflows that have workflows of their own, which no worker has run for seconds: workers were away, or are slow.
   * The claim decides which workflow sends a message, so the own one ends without a call when a worker runs it.
   */
  async #shareUnclaimed(pool: Pool): Promise<void> {
    const { late } = this.unclaimed.capacity();
    if (this.unclaimed.isUnlimited || late === 0) return;
    const limit = Math.min(late, MAX_PLANNED_ROWS / GROUP_SIZE) * GROUP_SIZE;
    const found = await findUnclaimed(pool, this.unclaimed.takeOverdue(limit), limit, this.#table);
    const ofChannels = [...groupBy(found, ({ channel }) => channel).values()];
    const chunks = ofChannels.flatMap((members) => chunksOf(members, GROUP_SIZE));
    if (chunks.length === 0) return;
    await this.#insertGroups(
      pool,
      chunks.map((chunk) => ({ isLate: true, members: chunk.map((member) => ({ outboxId: null, ...member })) })),
    );
  }

  /** Stores groups as rows that the next poll dispatches, so that a repeated start has the same id and members. */
  async #insertGroups(db: Db, groups: readonly Sharing[]): Promise<void> {
    await groupOutboxRows(
      db,
      groups.map((group) => ({ id: newId('grp'), ...group })),
      this.#table,
    );
  }
}

/** Locks the oldest rows about emails. If others may be left, it has locked single emails only of those. */
async function lockEmails(client: Db, limit: number): Promise<PendingRows> {
  const oldest = await lockEmailRows(client, limit);
  if (oldest.length < limit) return { rows: oldest, isFull: false };
  // A one-time password must not wait behind a newsletter of 10,000.
  const lateSingles = await lockLateSingles(client, oldest.at(-1)?.id ?? '0', LATE_ROWS);
  return { rows: [...oldest, ...lateSingles], isFull: true };
}

async function lockMessages(client: Db, limit: number): Promise<PendingRows> {
  const rows = await lockMessageRows(client, limit);
  return { rows, isFull: rows.length === limit };
}

/** Messages that are to share a workflow, and whether they have waited. */
interface Sharing {
  readonly isLate: boolean;
  readonly members: readonly GroupMember[];
}

function toSharing({ rows, isLate }: PlannedGroup): Sharing {
  const members = rows.map(({ id, message_id, version, traceparent }) => ({
    outboxId: id,
    id: message_id,
    version,
    traceparent,
  }));
  return { isLate, members };
}
