import { EMAIL_STATUSES } from '../domain/email/email.ts';
import { impliedStates, setOf, type State } from '../domain/statistics.ts';
import { type Step, STEP_MS } from '../store/statistics/series.ts';

/** A period of whole hours or days. */
export interface Period {
  readonly step: Step;
  /** The begin of the first hour or day, and the end, in Unix milliseconds. */
  readonly from: number;
  readonly to: number;
}

/** So many hours or days until the end of the current one. */
export function lastSteps(step: Step, count: number): Period {
  const to = (Math.floor(Date.now() / STEP_MS[step]) + 1) * STEP_MS[step];
  return { step, from: to - count * STEP_MS[step], to };
}

/** The list of emails of a period, which have reached a state by their current status. */
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
