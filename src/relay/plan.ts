import { GROUP_SIZE } from '../domain/limits.ts';
import { chunksOf, groupBy } from '../lib/group.ts';
import type { EmailRow } from '../store/outbox/outbox.ts';

/** A plan for dispatching locked outbox rows. */
interface Plan {
  /** Dispatched one by one, in this order: workflows that wait for a time start last. */
  readonly alone: readonly EmailRow[];
  /** Each becomes one workflow. */
  readonly groups: readonly (readonly EmailRow[])[];
  /** The number of rows that wait for a token. */
  readonly deferred: number;
}

/**
 * Plans starts that need a token: `each` starts one workflow per email while there are enough tokens, `group`
 * always groups them, `group singles` always groups single emails, so that a small batch does not wait behind a large one,
 * `defer` leaves them in the outbox.
 */
export type Mode = 'each' | 'group' | 'group singles' | 'defer';

/**
 * Decides which emails get a workflow of their own and which share one. Without enough tokens for all of them, one start
 * takes up to 500 emails with the same due time: first the emails of batches, then also single emails if the tokens do not
 * suffice for each of them beside the batches. Single emails precede batches. Emails that were scheduled singly, and rows
 * that start no workflow, need no token.
 */
export function plan(rows: readonly EmailRow[], tokens: number, mode: Mode = 'each'): Plan {
  const burst = firstRowOfEachEmail(rows.filter(needsToken));
  if (mode === 'each' && burst.length <= tokens) return { alone: dueFirst(rows), groups: [], deferred: 0 };

  const singles = burst.filter(isSingle);
  const members = burst.filter((row) => !isSingle(row));
  const [singleGroups, batchGroups] = [groupRows(singles), groupRows(members)];
  const isEach = mode === 'each' && singles.length + batchGroups.length <= tokens;
  const isEachMember = mode === 'group singles' && singleGroups.length + members.length <= tokens;
  const starts = [
    ...(isEach ? singles.map((row) => [row]) : singleGroups),
    ...(isEachMember ? members.map((row) => [row]) : batchGroups),
  ];
  const groups = mode === 'defer' ? [] : starts.slice(0, tokens);
  const groupsOfOne = groups.filter((group) => group.length === 1).flat();
  const plannedCount = groups.reduce((sum, group) => sum + group.length, 0);
  return {
    alone: dueFirst([...rows.filter((row) => !needsToken(row)), ...groupsOfOne]),
    groups: groups.filter((group) => group.length > 1),
    deferred: burst.length - plannedCount,
  };
}

/** Returns true for a start that may be one of many at the same time. */
export function needsToken(row: EmailRow): boolean {
  return row.action === 'start' && row.is_open && (!row.is_later || !isSingle(row));
}

/** Returns true if an email belongs to no batch. */
export function isSingle({ batch_id }: EmailRow): boolean {
  return batch_id === null;
}

/** Puts emails that are due before those scheduled for later, of which one organization may have added many. */
function dueFirst(rows: readonly EmailRow[]): EmailRow[] {
  const isLater = ({ action, is_later }: EmailRow) => action === 'start' && is_later;
  return [...rows.filter((row) => !isLater(row)), ...rows.filter(isLater)];
}

/** Returns one row per email, because a group that contains an email twice would send it twice. Later rows stay in the outbox. */
function firstRowOfEachEmail(rows: readonly EmailRow[]): EmailRow[] {
  const firsts = new Map<string, EmailRow>();
  for (const row of rows) if (!firsts.has(row.message_id)) firsts.set(row.message_id, row);
  return [...firsts.values()];
}

function groupRows(rows: readonly EmailRow[]): EmailRow[][] {
  const dueTogether = groupBy(rows, (row) => (row.is_later ? row.due_at : null));
  return [...dueTogether.values()].flatMap((due) => chunksOf(byOrganization(due), GROUP_SIZE));
}

/** Keeps the emails of one organization together, so that most groups have one fairness key. */
function byOrganization(rows: readonly EmailRow[]): EmailRow[] {
  return [...groupBy(rows, (row) => row.org_id).values()].flat();
}
