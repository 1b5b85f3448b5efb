import type { Counts, State } from '../domain/statistics.ts';

/**
 * Formats a share as a percentage with enough digits to differ from 0 % and 100 %: 7 of 23,000 is `0.030 %`.
 * @param total greater than 0
 */
export function shareInWords(part: number, total: number): string {
  const percent = (100 * part) / total;
  if (part === 0 || part >= total) return `${Math.round(percent)} %`;
  if (percent < 1) return `${percent.toPrecision(2)} %`;
  // Rounded down, so that only the total is shown as 100 %.
  if (percent > 99.9) return `${(Math.floor(percent * 100) / 100).toFixed(2)} %`;
  return `${percent.toFixed(1)} %`;
}

/** A rate of the overview, as the API defines it (`ratesOf`). */
export interface RateKind {
  readonly name: string;
  readonly state: State;
  readonly of: 'sent' | 'delivered';
  /** Rates above which mailbox providers or sending services object. */
  readonly limits?: { readonly warning: number; readonly bad: number };
}

/**
 * Gmail and Yahoo require a complaint rate below 0.3 % and recommend 0.1 % (support.google.com/a/answer/81126,
 * senders.yahooinc.com/best-practices). They publish no limit for bounces; sending services review accounts from 5 % and
 * recommend 2 % (docs.aws.amazon.com/ses, reputation metrics).
 */
export const RATE_KINDS: readonly RateKind[] = [
  { name: 'Delivered', state: 'delivered', of: 'sent' },
  { name: 'Bounced', state: 'bounced', of: 'sent', limits: { warning: 0.02, bad: 0.05 } },
  { name: 'Complained', state: 'complained', of: 'delivered', limits: { warning: 0.001, bad: 0.003 } },
  { name: 'Opened', state: 'opened', of: 'delivered' },
  { name: 'Clicked', state: 'clicked', of: 'delivered' },
];

/** Judges a rate by the limits of its kind; returns null if it has none, or nothing was sent. */
export function judgeRate({ state, of, limits }: RateKind, counts: Counts): 'good' | 'warning' | 'bad' | null {
  if (!limits || counts[of] === 0) return null;
  const rate = counts[state] / counts[of];
  if (rate >= limits.bad) return 'bad';
  return rate >= limits.warning ? 'warning' : 'good';
}

/** Formats the change of a rate in percentage points; returns null if one of the periods has no rate. */
export function changeInWords({ state, of }: RateKind, now: Counts, before: Counts): string | null {
  if (now[of] === 0 || before[of] === 0) return null;
  const points = 100 * (now[state] / now[of] - before[state] / before[of]);
  const size = Math.abs(points);
  if (size < 0.0005) return 'unchanged';
  const digits = size >= 1 ? size.toFixed(1) : size.toPrecision(size < 0.1 ? 1 : 2);
  return `${points > 0 ? 'up' : 'down'} ${digits} points`;
}
