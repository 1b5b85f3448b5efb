const MAX_RETRY_AFTER_MS = 86_400_000;

/**
 * Parses Retry-After (RFC 9110 §10.2.3), seconds or a date. Returns milliseconds from `now`, at most a day, or undefined
 * for invalid text.
 * @param now Unix milliseconds
 */
export function parseRetryAfter(value: string | null, now: number): number | undefined {
  if (value === null) return undefined;
  if (/^\d{1,10}$/.test(value.trim())) return Math.min(Number(value) * 1_000, MAX_RETRY_AFTER_MS);
  // Date.parse accepts almost any text: only text that starts with the name of a day is a date.
  const date = /^[A-Z][a-z]{2}/.test(value) ? Date.parse(value) : NaN;
  return Number.isNaN(date) ? undefined : Math.min(Math.max(0, date - now), MAX_RETRY_AFTER_MS);
}
