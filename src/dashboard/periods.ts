import { EMAIL_STATUSES } from '../domain/email/email.ts';
import { impliedStates, setOf, type State } from '../domain/statistics.ts';
import { readClock } from '../store/postgres/clock.ts';
import type { Db } from '../store/postgres/pool.ts';
import { beginOf, type Step, STEP_MS } from '../store/statistics/series.ts';

/** A period of whole hours or days. */
export interface Period {
  readonly step: Step;
  /** The start of the first hour or day, and the end, in Unix milliseconds. */
  readonly from: number;
  readonly to: number;
}

/** Returns the last `count` hours or days, including the current one, by the database's clock. */
export async function lastSteps(db: Db, step: Step, count: number): Promise<Period> {
  const to = beginOf(await readClock(db), step).getTime() + STEP_MS[step];
  return { step, from: to - count * STEP_MS[step], to };
}

/** Returns the path of the list of emails in a period, with the filter of all statuses that imply `state`. */
export function emailsPath(
  { from, to }: Pick<Period, 'from' | 'to'>,
  filters: Readonly<Record<string, string>> = {},
  state?: State,
): string {
  const query = new URLSearchParams(filters);
  if (state !== undefined && state !== 'accepted') {
    const reached = EMAIL_STATUSES.filter((status) => impliedStates(status) & setOf(state));
    for (const status of reached) query.append('status', status);
  }
  query.set('created_after', new Date(from).toISOString());
  query.set('created_before', new Date(to).toISOString());
  return `/dashboard/emails?${query.toString()}`;
}
