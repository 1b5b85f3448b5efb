import { groupBy } from '../lib/group.ts';
import type { EmailRow } from '../store/outbox/outbox.ts';

/** Emails that share one workflow at most: what Postmark takes in one call. */
export const GROUP_SIZE = 500;

/** What to do with the outbox rows that a relay holds. */
export interface Plan {
  /** Carried out one by one. */
  readonly alone: readonly EmailRow[];
  /** Each becomes one workflow. */
  readonly groups: readonly (readonly EmailRow[])[];
  /** Rows that wait for the budget. */
  readonly later: number;
}

/**
 * What starts that need budget do: `each` gets its own workflow while the budget reaches for all of them; they go
 * `together`, whatever the budget is; or they go `later`.
 */
export type Mode = 'each' | 'together' | 'later';

/**
 * Decides which emails get a workflow of their own and which share one. When the budget does not reach for all that is
 * waiting, one start takes up to 500 that are due at the same instant: those of batches first of all, and single emails
 * too where it does not reach for each of them beside the batches. Single emails come before batches. An email that was
 * sent singly for later, and whatever is no start, needs no budget.
 */
export function plan(rows: readonly EmailRow[], budget: number, mode: Mode = 'each'): Plan {
  const burst = firstOfEach(rows.filter(needsBudget));
  if (mode === 'each' && burst.length <= budget) return { alone: rows, groups: [], later: 0 };

  const bulk = bunches(burst.filter(({ batch_id }) => batch_id !== null));
  const singles = burst.filter(({ batch_id }) => batch_id === null);
  const isEach = mode === 'each' && singles.length + bulk.length <= budget;
  const bunched = [...(isEach ? singles.map((row) => [row]) : bunches(singles)), ...bulk];
  const groups = mode === 'later' ? [] : bunched.slice(0, budget);
  // One by itself needs no group.
  const single = groups.filter((group) => group.length === 1).flat();
  const taken = groups.reduce((sum, group) => sum + group.length, 0);
  return {
    alone: [...rows.filter((row) => !needsBudget(row)), ...single],
    groups: groups.filter((group) => group.length > 1),
    later: burst.length - taken,
  };
}

/** Whether a row is one of possibly many that are to be started at once. */
export function needsBudget({ action, open, waits, batch_id }: EmailRow): boolean {
  return action === 'start' && open && (!waits || batch_id !== null);
}

/** One row per email: a group that names an email twice would send it twice. The other rows stay for another look. */
function firstOfEach(rows: readonly EmailRow[]): EmailRow[] {
  const firsts = new Map<string, EmailRow>();
  for (const row of rows) if (!firsts.has(row.message_id)) firsts.set(row.message_id, row);
  return [...firsts.values()];
}

/** Rows that may share a workflow. */
function bunches(rows: readonly EmailRow[]): EmailRow[][] {
  const dueTogether = groupBy(rows, (row) => (row.waits ? row.due_at : null));
  return [...dueTogether.values()].flatMap((due) => chunks(byOrganization(due)));
}

/** Emails of one organization stay together, so that its share of the workers can be told. */
function byOrganization(rows: readonly EmailRow[]): EmailRow[] {
  return [...groupBy(rows, (row) => row.org_id).values()].flat();
}

function chunks(rows: readonly EmailRow[]): EmailRow[][] {
  const count = Math.ceil(rows.length / GROUP_SIZE);
  return Array.from({ length: count }, (_, i) => rows.slice(i * GROUP_SIZE, (i + 1) * GROUP_SIZE));
}
