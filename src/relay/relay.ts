import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { newId } from '../lib/ids.ts';
import {
  deferOutbox,
  deleteOutbox,
  type EmailRow,
  groupOutboxRows,
  type GroupRow,
  lockMessageRows,
  lockGroups,
  lockLateSingles,
  lockMaintenance,
  lockOutbox,
  type OutboxRow,
  type PendingKinds,
  findPendingKinds,
} from '../store/outbox/outbox.ts';
import { type Db, isUnreachable, type Pool, transaction } from '../store/postgres/pool.ts';
import { outboxDispatched } from '../telemetry/topics.ts';
import { isSingle, type Mode, needsToken, plan } from './plan.ts';
import { makeTokenBucket, type TokenBucket } from './token-bucket.ts';

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

/** Temporal cannot be reached or is overloaded; the rows are valid. */
export class TemporalUnreachable extends Error {}

export interface Relay {
  /** Signals that the outbox may have rows. Cheap: calls are coalesced into one poll. */
  readonly wake: () => void;
  /** Stops the relay; resolves once the rows that it has locked are dispatched and released. */
  readonly stop: () => Promise<void>;
}

/** Rows locked together when they may have to be grouped. */
const MAX_PLANNED_ROWS = 2_000;
/** Rows dispatched together; also the number of concurrent calls to Temporal. */
const MAX_DISPATCHED_ROWS = 100;
/** Rows of maintenance tasks locked together; many of them may concern the same one. */
const MAX_MAINTENANCE_ROWS = 500;
/** The outbox is polled this often even without a notification. */
const POLL_INTERVAL_MS = 1_000;
/**
 * Time between two rounds of grouping. A workflow costs about 40 ms of CPU time regardless of its size, so while emails arrive
 * faster than the rate limit, all that arrive in this time share one.
 */
const GROUP_INTERVAL_MS = 100;
/** The interval after LONG_GROUP_MIN_SINGLES single emails: ten workflows would take a fifth of the CPU time of 1,000 emails. */
const LONG_GROUP_INTERVAL_MS = 300;
const LONG_GROUP_MIN_SINGLES = 50;
/**
 * The estimated time for which one email of a batch occupies the workers: 0.7 ms through Postmark, 3 ms by SMTP. Meanwhile single
 * emails share workflows, since one workflow takes as much CPU time as forty emails of the batch.
 */
const BATCH_EMAIL_MS = 2;
const MAX_BACKOFF_MS = 10_000;
/** Time between two polls if the first found nothing left to do: every API request wakes the relay. */
const MIN_POLL_INTERVAL_MS = 10;

/**
 * Dispatches outbox rows to Temporal, oldest first, until it is stopped. Emails above the rate limit of workflow starts are
 * grouped. Any number of relays may share an outbox: each locks the rows it dispatches and deletes a row only after
 * Temporal has acknowledged it, so that a row may be dispatched twice but is never lost. While Postgres or Temporal is
 * unreachable, the relay retries with exponential backoff.
 */
export function startRelay(deps: RelayDeps): Relay {
  const { now = () => performance.now() } = deps;
  const stopping = new AbortController();
  let waking = new AbortController();

  const pause = async (ms: number, signal = stopping.signal): Promise<void> => {
    await sleep(ms, undefined, { signal }).catch(() => undefined);
  };

  const pace: Pace = {
    now,
    emails: makeTokenBucket(deps.startsPerSecond, now),
    messages: makeTokenBucket(deps.startsPerSecond, now),
    groupAt: -Infinity,
    batchesUntil: -Infinity,
  };
  const run = async (): Promise<void> => {
    let failures = 0;
    while (!stopping.signal.aborted) {
      // A row that is added during the poll may be missed by it, and ends the pause after it.
      waking = new AbortController();
      try {
        const next = await poll(deps, pace);
        if (failures > 0) deps.log.info({ failures }, 'relay resumed');
        failures = 0;
        if (next === 'wait') {
          await pause(MIN_POLL_INTERVAL_MS);
          await pause(POLL_INTERVAL_MS, AbortSignal.any([stopping.signal, waking.signal]));
        }
        if (typeof next === 'number') await pause(next);
      } catch (error) {
        if (failures++ === 0) deps.log.warn({ reason: reasonOf(error) }, 'relay paused');
        await pause(Math.min(POLL_INTERVAL_MS * 2 ** (failures - 1), MAX_BACKOFF_MS));
      }
    }
  };
  const running = run();

  return {
    wake: () => waking.abort(),
    stop: () => {
      stopping.abort();
      return running;
    },
  };
}

interface Pace {
  readonly now: () => number;
  readonly emails: TokenBucket;
  /** Chat-app messages cannot be grouped. With their own bucket, a burst of them takes no tokens from email. */
  readonly messages: TokenBucket;
  /** The time of the next round of grouping, by the monotonic clock. */
  groupAt: number;
  /** The time until which the dispatched batches are estimated to occupy the workers, by the monotonic clock. */
  batchesUntil: number;
}

/** The delay before the next poll: none, until woken, or a number of milliseconds. */
type Next = 'immediately' | 'wait' | number;

/** Locks pending rows and dispatches or groups them. */
async function poll(deps: RelayDeps, pace: Pace): Promise<Next> {
  const pending = await findPendingKinds(deps.pool);
  if (!Object.values(pending).includes(true)) return 'wait';
  const { next, unreachable } = await transaction(deps.pool, async (client): Promise<PollResult> => {
    // First, since they are few and grouping a burst takes time.
    const maintenance = pending.maintenance ? await lockMaintenance(client, MAX_MAINTENANCE_ROWS) : [];
    const messageLimit = Math.min(MAX_DISPATCHED_ROWS, pace.messages.available());
    const messages = pending.messages ? await lockMessageRows(client, messageLimit) : [];
    pace.messages.take(messages.length);
    const unreachable = await dispatchRows(deps, client, [...maintenance, ...messages]);
    if (unreachable) return { next: 'wait', unreachable };
    const emails = await pollEmails(deps, client, pace, pending);
    const messageDelayMs =
      pending.messages && messages.length === messageLimit ? pace.messages.msUntilNext() : Infinity;
    return { ...emails, next: earliest(emails.next, messageDelayMs) };
  });
  if (unreachable) throw unreachable;
  return next;
}

async function pollEmails(deps: RelayDeps, client: Db, pace: Pace, pending: PendingKinds): Promise<PollResult> {
  const { emails: bucket } = pace;
  // Existing groups are started before new ones are formed, so that workers are not idle meanwhile.
  const readyGroups = pending.groups ? await lockGroups(client, MAX_DISPATCHED_ROWS) : [];
  const groupsUnreachable = await dispatchRows(deps, client, readyGroups);
  if (groupsUnreachable) return { next: 'wait', unreachable: groupsUnreachable };
  pace.batchesUntil = Math.max(pace.batchesUntil, pace.now()) + countBatchEmails(readyGroups) * BATCH_EMAIL_MS;
  const isBesideBatch = pace.batchesUntil > pace.now();
  const { rows, isFull } = await lockEmailRows(client, bucket.available(), pending.emails);
  const untilGroupingMs = pace.groupAt - pace.now();
  const isBurst = rows.length > (deps.startsPerSecond * GROUP_INTERVAL_MS) / 1_000;
  const mode = isFull ? 'each' : modeOf(untilGroupingMs, isBurst, isBesideBatch);
  const { alone, groups, deferred } = plan(rows, bucket.available(), mode);
  const dispatched = alone.slice(0, MAX_DISPATCHED_ROWS);
  const lone = dispatched.filter(needsToken);
  bucket.take(groups.length + lone.length);
  const unreachable = await dispatchRows(deps, client, dispatched);
  if (groups.length > 0) await insertGroups(client, groups);
  const intervalMs = groupIntervalMs(groups.flat(), lone, isBesideBatch);
  if (intervalMs > 0) pace.groupAt = pace.now() + intervalMs;
  if (groups.length > 0 || alone.length > MAX_DISPATCHED_ROWS) return { next: 'immediately', unreachable };
  if (deferred > 0) return { next: Math.max(bucket.msUntilNext(), untilGroupingMs, 0), unreachable };
  return { next: isFull || readyGroups.length === MAX_DISPATCHED_ROWS ? 'immediately' : 'wait', unreachable };
}

/** Locks the oldest rows about emails. @returns `isFull` if others may be left, of which it has locked single emails only */
async function lockEmailRows(
  client: Db,
  tokens: number,
  isPending: boolean,
): Promise<{ rows: EmailRow[]; isFull: boolean }> {
  // With enough tokens for all rows that it dispatches together, a relay leaves the other rows to other relays.
  const limit = tokens < MAX_DISPATCHED_ROWS ? MAX_PLANNED_ROWS : MAX_DISPATCHED_ROWS;
  const oldest = isPending ? await lockOutbox(client, limit) : [];
  if (oldest.length < limit) return { rows: oldest, isFull: false };
  // A one-time password must not wait behind a newsletter of 10,000.
  const lateSingles = await lockLateSingles(client, oldest.at(-1)?.id ?? '0', MAX_DISPATCHED_ROWS);
  return { rows: [...oldest, ...lateSingles], isFull: true };
}

/** Returns the time until the next round of grouping; 0 if this was no round for single emails. */
function groupIntervalMs(grouped: readonly EmailRow[], lone: readonly EmailRow[], isBesideBatch: boolean): number {
  // Beside a batch a lone email ends a round too, so that the next ones wait for each other.
  const singles = (isBesideBatch ? [...grouped, ...lone] : grouped).filter(isSingle).length;
  if (singles === 0) return 0;
  return isBesideBatch || singles >= LONG_GROUP_MIN_SINGLES ? LONG_GROUP_INTERVAL_MS : GROUP_INTERVAL_MS;
}

/** Counts the members of batches that workers can send immediately. */
function countBatchEmails(groups: readonly GroupRow[]): number {
  const immediate = groups.filter(({ bulk, due_at }) => bulk && due_at === null);
  return immediate.reduce((sum, { members }) => sum + members.length, 0);
}

/**
 * Chooses the mode shortly after a grouping, and beside a batch.
 * @param untilGroupingMs time until the next round of grouping; negative if it has passed
 * @param isBurst true if more rows are pending than tokens are refilled in `GROUP_INTERVAL_MS`
 * @param isBesideBatch true if workers are probably sending a batch
 */
function modeOf(untilGroupingMs: number, isBurst: boolean, isBesideBatch: boolean): Mode {
  if (untilGroupingMs > 0) return 'defer';
  if (isBesideBatch) return 'group singles';
  return isBurst && untilGroupingMs >= -GROUP_INTERVAL_MS ? 'group' : 'each';
}

function earliest(next: Next, delayMs: number): Next {
  if (next === 'immediately' || delayMs === Infinity) return next;
  return next === 'wait' ? delayMs : Math.min(next, delayMs);
}

interface PollResult {
  readonly next: Next;
  readonly unreachable?: TemporalUnreachable | undefined;
}

/** Stores groups as rows that the next poll dispatches, so that a repeated start has the same id and members. */
async function insertGroups(client: Db, groups: readonly (readonly EmailRow[])[]): Promise<void> {
  await groupOutboxRows(
    client,
    groups.map((rows) => ({
      id: newId('grp'),
      members: rows.map(({ id, message_id, version, traceparent }) => ({
        outboxId: id,
        id: message_id,
        version,
        traceparent,
      })),
    })),
  );
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
