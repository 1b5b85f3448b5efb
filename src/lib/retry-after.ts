/** Milliseconds of the longest Retry-After that is believed. */
const DAY = 86_400_000;

/**
 * Retry-After (RFC 9110 §10.2.3), seconds or a date, in milliseconds from `now`, a day at most; undefined when it is
 * neither.
 * @param now Unix milliseconds
 */
export function parseRetryAfter(value: string | null, now: number): number | undefined {
  if (value === null) return undefined;
  if (/^\d{1,10}$/.test(value.trim())) return Math.min(Number(value) * 1_000, DAY);
  // Node finds a date in nearly everything: only what begins with the name of a day is one.
  const date = /^[A-Z][a-z]{2}/.test(value) ? Date.parse(value) : NaN;
  return Number.isNaN(date) ? undefined : Math.min(Math.max(0, date - now), DAY);
}
