import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import {
  deferOutbox,
  deleteOutbox,
  findPendingKinds,
  lockGroups,
  lockMaintenance,
  type OutboxRow,
} from '../store/outbox/outbox.ts';
import { type Db, isUnreachable, type Pool, transaction } from '../store/postgres/pool.ts';
import { outboxDispatched } from '../telemetry/topics.ts';
import { TemporalUnreachable, WorkflowStillOpen } from './errors.ts';
import { Lane, MAX_DISPATCHED_ROWS, type Next } from './lane.ts';
import { makeLease } from './lease.ts';

export interface RelayDeps {
  readonly pool: Pool;
  /** Makes the request to Temporal that a row describes. Rejects with TemporalUnreachable if no row could succeed now. */
  readonly dispatch: (row: OutboxRow) => Promise<void>;
  /** The rate limit of workflow starts: of emails, and the same of chat-app messages and SMS. Those above it are grouped. */
  readonly startsPerSecond: number;
  readonly log: Logger;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
}

export interface Relay {
  /** Signals that the outbox may have rows. Cheap: calls are coalesced into one poll. */
  readonly wake: () => void;
  /** Stops the relay; resolves once the rows that it has locked are dispatched and released. */
  readonly stop: () => Promise<void>;
}

/** Rows of maintenance tasks locked together; many of them may concern the same one. */
const MAX_MAINTENANCE_ROWS = 500;
/** The outbox is polled this often even without a notification. */
const POLL_INTERVAL_MS = 1_000;
/** A relay that stands by asks for the lease this often. */
const STANDBY_INTERVAL_MS = 250;
const MAX_BACKOFF_MS = 10_000;
/** Minimum time between two polls if the first found nothing left to do: every API request wakes the relay. */
const MIN_POLL_INTERVAL_MS = 10;

/**
 * Dispatches outbox rows to Temporal, mostly the oldest first, until it is stopped. Messages above the rate limit of workflow starts are
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

  // Messages come first, since a burst of emails takes time to group.
  const lanes = (['chat_messages', 'emails'] as const).map((table) => new Lane(table, deps.startsPerSecond, now));
  const lease = makeLease(deps.pool, now, {
    get lagMs() {
      return Math.max(...lanes.map(({ unclaimed }) => unclaimed.lagMs));
    },
    get isBehind() {
      return lanes.some(({ unclaimed }) => unclaimed.isBehind);
    },
  });
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
        const next = await poll(deps, lanes);
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

/** The error is returned, not thrown, so that the transaction commits the deletion of dispatched rows. */
type PollResult = Next | TemporalUnreachable;

/** Locks pending rows and dispatches or groups them. */
async function poll(deps: RelayDeps, lanes: readonly Lane[]): Promise<Next> {
  for (const lane of lanes) await lane.observeWorkers(deps.pool);
  const pending = await findPendingKinds(deps.pool);
  if (!Object.values(pending).includes(true)) return 'wait';
  const result = await transaction(deps.pool, async (client): Promise<PollResult> => {
    // First, since they are few and grouping a burst takes time.
    const maintenance = pending.maintenance ? await lockMaintenance(client, MAX_MAINTENANCE_ROWS) : [];
    // Existing groups are started before new ones are formed, so that workers are not idle meanwhile.
    const groups = pending.groups ? await lockGroups(client, MAX_DISPATCHED_ROWS) : [];
    const unreachable = await dispatchRows(deps, client, [...maintenance, ...groups]);
    if (unreachable) return unreachable;
    let next: Next = groups.length === MAX_DISPATCHED_ROWS ? 'immediately' : 'wait';
    for (const lane of lanes) {
      lane.recordStarts(groups);
      const dispatch = (rows: readonly OutboxRow[]) => dispatchRows(deps, client, rows);
      const nextOfLane = await lane.poll(client, pending[lane.kind], dispatch);
      if (nextOfLane instanceof TemporalUnreachable) return nextOfLane;
      next = earliest(next, nextOfLane);
    }
    return next;
  });
  if (result instanceof TemporalUnreachable) throw result;
  return result;
}

function earliest(one: Next, other: Next): Next {
  if (one === 'immediately' || other === 'immediately') return 'immediately';
  if (one === 'wait') return other;
  return other === 'wait' ? one : Math.min(one, other);
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
