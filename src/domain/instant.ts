import { SCHEDULE_DAYS } from './limits.ts';

const INSTANT = /^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?:[Zz]|([+-])(\d\d)(?::?(\d\d))?)$/;

/**
 * Parses an ISO 8601 instant with an offset, such as `2026-03-01T09:30:00+02:00` or `2026-03-01T07:30Z`. Truncates fractions
 * to milliseconds. Returns undefined for invalid text, days and times, and for years outside 1 to 9999 in UTC.
 */
export function parseInstant(text: string): Date | undefined {
  const match = INSTANT.exec(text);
  if (!match) return undefined;
  const [, day, minutes, seconds = '00', fraction = '', sign, offsetHours = '0', offsetMinutes = '0'] = match;
  const local = new Date(`${day}T${minutes}:${seconds}.${fraction.padEnd(3, '0').slice(0, 3)}Z`);
  // Date rejects a day or time that does not exist, or rolls it over to another one.
  const exists = !Number.isNaN(local.getTime()) && local.toISOString().startsWith(`${day}T${minutes}:${seconds}.`);
  if (!exists || Number(offsetHours) > 23 || Number(offsetMinutes) > 59) return undefined;

  const offset = (sign === '-' ? -1 : 1) * (Number(offsetHours) * 60 + Number(offsetMinutes)) * 60_000;
  const instant = new Date(local.getTime() - offset);
  // Postgres and JavaScript format other years differently, and not with four digits.
  const inRange = instant.getUTCFullYear() >= 1 && instant.getUTCFullYear() <= 9999;
  return inRange ? instant : undefined;
}

/** Error messages for `scheduled_at`; the database's clock decides the last two. */
export const SCHEDULE_PROBLEMS = {
  form: 'must be an ISO 8601 instant with an offset, such as 2026-03-01T09:30:00Z',
  past: 'must be in the future',
  far: `must be at most ${SCHEDULE_DAYS} days ahead`,
} as const;
