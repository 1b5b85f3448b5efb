import { SCHEDULE_DAYS } from './limits.ts';

const INSTANT =
  /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?:([Zz])|([+-])(\d\d)(?::?(\d\d))?)$/;

/**
 * Parses an ISO 8601 instant with an offset, such as `2026-03-01T09:30:00+02:00` or `2026-03-01T07:30Z`. Fractions are
 * truncated to milliseconds. Undefined for invalid text, days and times, and outside of the years 1 to 9999 in UTC.
 */
export function parseInstant(text: string): Date | undefined {
  const match = INSTANT.exec(text);
  if (!match) return undefined;
  const part = (index: number) => Number(match[index] ?? 0);
  const [year, month, day, hour, minute, second] = [1, 2, 3, 4, 5, 6].map(part) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const [offsetHours, offsetMinutes] = [part(10), part(11)];
  if (hour > 23 || minute > 59 || second > 59 || offsetHours > 23 || offsetMinutes > 59) return undefined;

  const milliseconds = Number((match[7] ?? '').padEnd(3, '0').slice(0, 3));
  const local = new Date(0);
  local.setUTCFullYear(year, month - 1, day);
  local.setUTCHours(hour, minute, second, milliseconds);
  const exists = local.getUTCMonth() === month - 1 && local.getUTCDate() === day;
  if (!exists) return undefined;

  const offset = (match[9] === '-' ? -1 : 1) * (offsetHours * 60 + offsetMinutes) * 60_000;
  const instant = new Date(local.getTime() - offset);
  // Postgres and JavaScript format years beyond these differently, and not in four digits.
  const inRange = instant.getUTCFullYear() >= 1 && instant.getUTCFullYear() <= 9999;
  return inRange ? instant : undefined;
}

/** Error messages for `scheduled_at`; the database's clock decides the last two. */
export const SCHEDULE_PROBLEMS = {
  form: 'must be an ISO 8601 instant with an offset, such as 2026-03-01T09:30:00Z',
  past: 'must be in the future',
  far: `must be at most ${SCHEDULE_DAYS} days ahead`,
} as const;
