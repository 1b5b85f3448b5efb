import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { GROUP_SIZE } from '../domain/limits.ts';
import { chunksOf } from '../lib/group.ts';
import { newId } from '../lib/ids.ts';
import {
  deferOutbox,
  deleteOutbox,
  type EmailRow,
  groupOutboxRows,
  lockMessageRows,
  lockGroups,
  lockLateSingles,
  lockMaintenance,
  lockEmailRows,
  type OutboxRow,
  type PendingKinds,
  findPendingKinds,
  type GroupMember,
} from '../store/outbox/outbox.ts';
import { findClaimed, findUnclaimed } from '../store/outbox/unclaimed.ts';
import { type Db, isUnreachable, type Pool, transaction } from '../store/postgres/pool.ts';
import { outboxDispatched } from '../telemetry/topics.ts';
import { GroupingPace } from './grouping-pace.ts';
import { makeLease } from './lease.ts';
import { needsToken, plan, type PlannedGroup } from './plan.ts';
import { makeStartLimit, type StartLimit } from './start-limit.ts';
import { UnclaimedStarts } from './unclaimed-starts.ts';

export interface RelayDeps {
  readonly pool: Pool;
  /** Makes the request to Temporal that a row describes. Rejects with TemporalUnreachable if no row could succeed now. */
  readonly dispatch: (row: OutboxRow) => Promise<void>;
  /** The rate limit of workflow starts. Emails above it are grouped. */
  readonly startsPerSecond: number;
  readonly log: Logger;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
}

/** Temporal cannot be reached, is overloaded, or refuses every request; the rows are valid. */
export class TemporalUnreachable extends Error {}

/** The workflow that a row restarts has a run that may be about to end; the row is dispatched again later. */
export class WorkflowStillOpen extends Error {}

export interface Relay {
  /** Signals that the outbox may have rows. Cheap: calls are coalesced into one poll. */
  readonly wake: () => void;
  /** Stops the relay; resolves once the rows that it has locked are dispatched and released. */
  readonly stop: () => Promise<void>;
}

/** Rows locked together when they may have to be grouped. */
const MAX_PLANNED_ROWS = 2_000;
/** If more rows are pending than are locked, so many of the latest (about half a second) are searched for single emails. */
const LATE_ROWS = 500;
/** Rows dispatched together; also the number of concurrent calls to Temporal. */
const MAX_DISPATCHED_ROWS = 100;
/** Rows of maintenance tasks locked together; many of them may concern the same one. */
const MAX_MAINTENANCE_ROWS = 500;
/** The outbox is polled this often even without a notification. */
const POLL_INTERVAL_MS = 1_000;
/** A relay that stands by asks for the lease this often. */
const STANDBY_INTERVAL_MS = 250;
const MAX_BACKOFF_MS = 10_000;
/** Minimum time between two polls if the first found nothing left to do: every API request wakes the relay. */
const MIN_POLL_INTERVAL_MS = 10;
/** While emails wait until more workflows are claimed, claims are looked up this often. */
const CLAIMS_INTERVAL_MS = 100;
/** Emails whose own workflows have not claimed them are looked up this often. */
const UNCLAIMED_INTERVAL_MS = 1_000;

/**
 * Dispatches outbox rows to Temporal, mostly the oldest first, until it is stopped. Emails above the rate limit of workflow starts are
 * grouped. Of the relays that share an outbox, the one with the lease works and the others stand by: two would form smaller
 * groups. Should two work for a while, each locks the rows it dispatches. A row is deleted only after Temporal has
 * acknowledged it, so that it may be dispatched twice but is never lost. While Postgres or Temporal is unreachable, the relay
 * retries with exponential backoff, and another may take over.
 */
export function startRelay(deps: RelayDeps): Relay {
  const { now = () => performance.now() } = deps;
  const stopping = new AbortController();
  let waking = new AbortController();

  const pause = async (ms: number, signal = stopping.signal): Promise<void> => {
    await sleep(ms, undefined, { signal }).catch(() => undefined);
  };

  const pace: Pace = {
    emails: makeStartLimit(deps.startsPerSecond, now),
    messages: makeStartLimit(deps.startsPerSecond, now),
    grouping: new GroupingPace(deps.startsPerSecond, now),
    unclaimed: new UnclaimedStarts(deps.startsPerSecond, now),
    shareUnclaimed: everyMs(UNCLAIMED_INTERVAL_MS, now, () => shareUnclaimed(deps.pool, pace.unclaimed)),
  };
  const lease = makeLease(deps.pool, now, pace.unclaimed);
  // If it cannot be released, it expires.
  const release = () => lease.release().catch(() => undefined);
  const run = async (): Promise<void> => {
    let failures = 0;
    while (!stopping.signal.aborted) {
      // Created before the poll: `wake` during the poll, which may miss the new row, then ends the pause after it. `stop` aborts this
      // controller instead of AbortSignal.any being used: in Node 20, each of its calls leaves an entry in a long-lived signal.
      waking = new AbortController();
      try {
        if (!(await lease.hold())) {
          await pause(STANDBY_INTERVAL_MS);
          continue;
        }
        const next = await poll(deps, pace);
        if (failures > 0) deps.log.info({ failures }, 'relay resumed');
        failures = 0;
        if (next === 'wait') {
          await pause(MIN_POLL_INTERVAL_MS);
          await pause(POLL_INTERVAL_MS, waking.signal);
        }
        if (typeof next === 'number') await pause(next);
      } catch (error) {
        if (failures++ === 0) deps.log.warn({ reason: reasonOf(error) }, 'relay paused');
        if (error instanceof TemporalUnreachable) await release();
        await pause(Math.min(POLL_INTERVAL_MS * 2 ** (failures - 1), MAX_BACKOFF_MS));
      }
    }
    // After a failure it is released already, or Postgres cannot be reached.
    if (failures === 0) await release();
  };
  const running = run();

  return {
    wake: () => waking.abort(),
    stop: () => {
      stopping.abort();
      waking.abort();
      return running;
    },
  };
}

interface Pace {
  readonly emails: StartLimit;
  /** Chat-app messages cannot be grouped. With their own bucket, a burst of them takes no tokens from email. */
  readonly messages: StartLimit;
  readonly grouping: GroupingPace;
  readonly unclaimed: UnclaimedStarts;
  readonly shareUnclaimed: () => Promise<void>;
}

/** When to poll again: immediately, at the next `wake` or after POLL_INTERVAL_MS, or after so many milliseconds. */
type Next = 'immediately' | 'wait' | number;

/** The error is returned, not thrown, so that the transaction commits the deletion of dispatched rows. */
type PollResult = Next | TemporalUnreachable;

/** Locks pending rows and dispatches or groups them. */
async function poll(deps: RelayDeps, pace: Pace): Promise<Next> {
  await lookUpClaims(deps.pool, pace.unclaimed);
  await pace.shareUnclaimed();
  const pending = await findPendingKinds(deps.pool);
  if (!Object.values(pending).includes(true)) return 'wait';
  const result = await transaction(deps.pool, async (client): Promise<PollResult> => {
    // First, since they are few and grouping a burst takes time.
    const maintenance = pending.maintenance ? await lockMaintenance(client, MAX_MAINTENANCE_ROWS) : [];
    const messageLimit = Math.min(MAX_DISPATCHED_ROWS, pace.messages.available());
    const messages = pending.messages ? await lockMessageRows(client, messageLimit) : [];
    pace.messages.take(messages.length);
    const unreachable = await dispatchRows(deps, client, [...maintenance, ...messages]);
    if (unreachable) return unreachable;
    const next = await pollEmails(deps, client, pace, pending);
    if (next instanceof TemporalUnreachable) return next;
    const messageDelayMs =
      pending.messages && messages.length === messageLimit ? pace.messages.msUntilNext() : Infinity;
    return earliest(next, messageDelayMs);
  });
  if (result instanceof TemporalUnreachable) throw result;
  return result;
}

async function pollEmails(deps: RelayDeps, client: Db, pace: Pace, pending: PendingKinds): Promise<PollResult> {
  const { emails: bucket, grouping, unclaimed } = pace;
  // Existing groups are started before new ones are formed, so that workers are not idle meanwhile.
  const readyGroups = pending.groups ? await lockGroups(client, MAX_DISPATCHED_ROWS) : [];
  const groupsUnreachable = await dispatchRows(deps, client, readyGroups);
  if (groupsUnreachable) return groupsUnreachable;
  grouping.recordStarts(readyGroups);
  unclaimed.recordGroups(readyGroups);
  const { isBehind } = unclaimed;
  const { rows, isFull } = await lockPendingEmails(client, bucket.available(), pending.emails);
  const msUntilRound = grouping.msUntilRound();
  const { alone, groups, deferred } = plan(
    rows,
    bucket.available(),
    isFull ? 'each' : grouping.chooseMode(rows.length, isBehind),
    unclaimed.capacity(),
  );
  const dispatched = alone.slice(0, MAX_DISPATCHED_ROWS);
  const ownWorkflows = dispatched.filter(needsToken);
  bucket.take(groups.length + ownWorkflows.length);
  for (const { message_id: id } of ownWorkflows) unclaimed.recordOwn(id);
  const unreachable = await dispatchRows(deps, client, dispatched);
  if (groups.length > 0) await insertGroups(client, groups.map(toNewGroup));
  grouping.recordPlan(
    groups.flatMap((group) => group.rows),
    ownWorkflows,
    isBehind,
  );
  if (unreachable) return unreachable;
  if (groups.length > 0 || alone.length > MAX_DISPATCHED_ROWS) return 'immediately';
  if (deferred > 0) return Math.max(bucket.msUntilNext(), msUntilRound, isBehind ? CLAIMS_INTERVAL_MS : 0, 0);
  return isFull || readyGroups.length === MAX_DISPATCHED_ROWS ? 'immediately' : 'wait';
}

/** Locks the oldest rows about emails. @returns `isFull` if others may be left, of which it has locked single emails only */
async function lockPendingEmails(
  client: Db,
  tokens: number,
  isPending: boolean,
): Promise<{ rows: EmailRow[]; isFull: boolean }> {
  // With a token for each of the oldest rows that can be dispatched together, no further ones are locked.
  const limit = tokens < MAX_DISPATCHED_ROWS ? MAX_PLANNED_ROWS : MAX_DISPATCHED_ROWS;
  const oldest = isPending ? await lockEmailRows(client, limit) : [];
  if (oldest.length < limit) return { rows: oldest, isFull: false };
  // A one-time password must not wait behind a newsletter of 10,000.
  const lateSingles = await lockLateSingles(client, oldest.at(-1)?.id ?? '0', LATE_ROWS);
  return { rows: [...oldest, ...lateSingles], isFull: true };
}

function earliest(next: Next, delayMs: number): Next {
  if (next === 'immediately' || delayMs === Infinity) return next;
  return next === 'wait' ? delayMs : Math.min(next, delayMs);
}

/** Emails that are to share a workflow, and whether they have waited. */
interface Sharing {
  readonly isLate: boolean;
  readonly members: readonly GroupMember[];
}

function toNewGroup({ rows, isLate }: PlannedGroup): Sharing {
  const members = rows.map(({ id, message_id, version, traceparent }) => ({
    outboxId: id,
    id: message_id,
    version,
    traceparent,
  }));
  return { isLate, members };
}

/** Stores groups as rows that the next poll dispatches, so that a repeated start has the same id and members. */
async function insertGroups(client: Db, groups: readonly Sharing[]): Promise<void> {
  await groupOutboxRows(
    client,
    groups.map((group) => ({ id: newId('grp'), ...group })),
  );
}

async function lookUpClaims(db: Db, unclaimed: UnclaimedStarts): Promise<void> {
  const pending = unclaimed.pending();
  unclaimed.recordClaims(pending.length > 0 ? await findClaimed(db, pending) : []);
}

/**
 * Lets emails share workflows that have workflows of their own, which no worker has run for seconds: workers were away, or are slow. The
 * claim decides which workflow sends an email, so the own one ends without a call when a worker runs it.
 */
async function shareUnclaimed(pool: Pool, unclaimed: UnclaimedStarts): Promise<void> {
  const { late } = unclaimed.capacity();
  if (unclaimed.isUnlimited || late === 0) return;
  const limit = Math.min(late, MAX_PLANNED_ROWS / GROUP_SIZE) * GROUP_SIZE;
  const members = await findUnclaimed(pool, unclaimed.takeOverdue(limit), limit);
  if (members.length === 0) return;
  const chunks = chunksOf(
    members.map((member) => ({ outboxId: null, ...member })),
    GROUP_SIZE,
  );
  await insertGroups(
    pool,
    chunks.map((chunk) => ({ isLate: true, members: chunk })),
  );
}

/** Returns a function that runs a step at most once per interval. */
function everyMs(intervalMs: number, now: () => number, step: () => Promise<void>): () => Promise<void> {
  let nextAt = -Infinity;
  return async () => {
    if (now() < nextAt) return;
    nextAt = now() + intervalMs;
    await step();
  };
}

/** Dispatches rows concurrently and deletes the successful ones. @returns the error if Temporal is unreachable */
async function dispatchRows(
  deps: RelayDeps,
  client: Db,
  rows: readonly OutboxRow[],
): Promise<TemporalUnreachable | undefined> {
  const results = await Promise.allSettled(rows.map((row) => deps.dispatch(row)));
  const done: string[] = [];
  const refused: string[] = [];
  let unreachable: TemporalUnreachable | undefined;
  for (const [index, result] of results.entries()) {
    const row = rows[index] as OutboxRow;
    const ids = 'more_ids' in row ? [row.id, ...row.more_ids] : [row.id];
    const report = (outcome: 'done' | 'refused' | 'unreachable') =>
      outboxDispatched.publish({ action: row.action, outcome, count: ids.length });
    if (result.status === 'fulfilled') {
      done.push(...ids);
      report('done');
    } else if (result.reason instanceof TemporalUnreachable) {
      unreachable = result.reason;
      report('unreachable');
    } else {
      refused.push(...ids);
      report('refused');
      if (result.reason instanceof WorkflowStillOpen) continue;
      deps.log.error(
        { message: row.message_id, action: row.action, tries: row.tries, reason: reasonOf(result.reason) },
        'Temporal refused an outbox row',
      );
    }
  }
  await deleteOutbox(client, done);
  await deferOutbox(client, refused);
  return unreachable;
}

function reasonOf(error: unknown): string {
  if (isUnreachable(error)) return 'Postgres cannot be reached';
  return error instanceof Error ? error.message : String(error);
}
