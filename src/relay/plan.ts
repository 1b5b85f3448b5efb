import { GROUP_SIZE } from '../domain/limits.ts';
import { chunksOf, groupBy } from '../lib/group.ts';
import type { DeliveryRow } from '../store/outbox/outbox.ts';
import type { StartCapacity } from './unclaimed-starts.ts';

/** A plan for dispatching locked outbox rows. */
interface Plan<R extends DeliveryRow> {
  /** Dispatched one by one, in this order: workflows that wait for a time start last. */
  readonly alone: readonly R[];
  /** Each becomes one workflow. */
  readonly groups: readonly PlannedGroup<R>[];
  /** The number of rows that wait for a token. */
  readonly deferred: number;
}

/** Messages that are to share a workflow. */
export interface PlannedGroup<R extends DeliveryRow = DeliveryRow> {
  readonly rows: readonly R[];
  /** True for single messages that have waited: they are sent beside those that have not. */
  readonly isLate: boolean;
}

/** Without a limit by what workers have claimed. */
const UNLIMITED: StartCapacity = { own: Infinity, detached: Infinity, fresh: Infinity, late: Infinity };

/**
 * Plans starts that need a token: `each` starts one workflow per email while there are enough tokens, `group`
 * always groups them, `group singles` always groups single emails, so that a small batch does not wait behind a large one,
 * `defer` leaves them in the outbox.
 */
export type Mode = 'each' | 'group' | 'group singles' | 'defer';

/**
 * Decides which messages get a workflow of their own and which share one. Without enough tokens or capacity for all of them, one start
 * takes up to 500 messages of one channel with the same due time: first the emails of batches, then also single messages if the tokens
 * do not suffice for each of them beside the batches. Single messages precede batches, and those that are due just now precede those
 * that have waited. Messages that were scheduled singly, and rows that start no workflow, need no token. An email that left its group
 * because of the others shares no workflow; it waits.
 */
export function plan<R extends DeliveryRow>(
  rows: readonly R[],
  tokens: number,
  mode: Mode = 'each',
  capacity: StartCapacity = UNLIMITED,
): Plan<R> {
  const burst = firstRowOfEachMessage(rows.filter(needsToken));
  const unshared = burst.filter((row) => !canShare(row));
  const detached = unshared.slice(0, Math.min(tokens, capacity.detached));
  const [singles, members] = partition(burst.filter(canShare), isSingle);
  const areAllOwn = burst.length <= tokens && burst.length <= capacity.own;
  if (mode === 'each' && areAllOwn) return { alone: dueFirst(rows), groups: [], deferred: 0 };

  const left = tokens - detached.length;
  const [singleGroups, batchGroups] = [groupSingles(singles, capacity), groupRows(members)];
  const isEach = mode === 'each' && singles.length <= capacity.own && singles.length + batchGroups.length <= left;
  const isEachMember =
    mode === 'group singles' && members.length <= capacity.own && singleGroups.length + members.length <= left;
  const starts = [
    ...(isEach ? singles.map((row) => toGroup([row])) : singleGroups),
    ...(isEachMember ? members.map((row) => [row]) : batchGroups).map((each) => toGroup(each)),
  ];
  const groups = mode === 'defer' ? [] : starts.slice(0, left);
  // Without capacity, an email alone becomes a group too: groups have workers of their own.
  const isOwn = ({ rows: { length } }: PlannedGroup<R>) => length === 1 && capacity.own > 0;
  const plannedCount = groups.reduce((sum, group) => sum + group.rows.length, 0);
  return {
    alone: dueFirst([
      ...rows.filter((row) => !needsToken(row)),
      ...detached,
      ...groups.filter(isOwn).flatMap((group) => group.rows),
    ]),
    groups: groups.filter((group) => !isOwn(group)),
    deferred: burst.length - detached.length - plannedCount,
  };
}

function toGroup<R extends DeliveryRow>(rows: readonly R[], isLate = false): PlannedGroup<R> {
  return { rows, isLate };
}

/** Groups single messages, as many groups as there may be. */
function groupSingles<R extends DeliveryRow>(singles: readonly R[], capacity: StartCapacity): PlannedGroup<R>[] {
  const [late, fresh] = partition(singles, ({ is_late }) => is_late);
  return [
    ...groupRows(fresh)
      .slice(0, capacity.fresh)
      .map((rows) => toGroup(rows)),
    ...groupRows(late)
      .slice(0, capacity.late)
      .map((rows) => toGroup(rows, true)),
  ];
}

function partition<R>(rows: readonly R[], isFirst: (row: R) => boolean): [R[], R[]] {
  return [rows.filter(isFirst), rows.filter((row) => !isFirst(row))];
}

/** Returns true for a start that may be one of many at the same time. */
export function needsToken(row: DeliveryRow): boolean {
  if (!row.is_open) return false;
  return row.action === 'leave' || (canShare(row) && (!row.is_later || !isSingle(row)));
}

function canShare({ action }: DeliveryRow): boolean {
  return action === 'start' || action === 'message' || action === 'message_again';
}

/** Returns true if a message belongs to no batch. */
export function isSingle({ batch_id }: DeliveryRow): boolean {
  return batch_id === null;
}

/** Puts messages that are due before those scheduled for later, of which one organization may have added many. */
function dueFirst<R extends DeliveryRow>(rows: readonly R[]): R[] {
  const isLater = (row: R) => canShare(row) && row.is_later;
  return [...rows.filter((row) => !isLater(row)), ...rows.filter(isLater)];
}

/** Returns one row per message, because a group that contains one twice would send it twice. Later rows stay in the outbox. */
function firstRowOfEachMessage<R extends DeliveryRow>(rows: readonly R[]): R[] {
  const firsts = new Map<string, R>();
  for (const row of rows) if (!firsts.has(row.message_id)) firsts.set(row.message_id, row);
  return [...firsts.values()];
}

function groupRows<R extends DeliveryRow>(rows: readonly R[]): R[][] {
  const channelOf = (row: DeliveryRow) => ('channel' in row ? row.channel : 'email');
  const dueTogether = groupBy(rows, (row) => `${channelOf(row)} ${row.is_later ? row.due_at : null}`);
  return [...dueTogether.values()].flatMap((due) => chunksOf(byOrganization(due), GROUP_SIZE));
}

/** Keeps the messages of one organization together, so that most groups have one fairness key. */
function byOrganization<R extends DeliveryRow>(rows: readonly R[]): R[] {
  return [...groupBy(rows, (row) => row.org_id).values()].flat();
}
