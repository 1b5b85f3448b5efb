import { ServiceError } from '../domain/errors.ts';
import { parseInstant } from '../domain/instant.ts';

/** Matches the value of a `datetime-local` field: no offset, seconds only if they are not 0. */
const LOCAL = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?$/;
/** Matches a name of the IANA database, or UTC. Offsets are not time zone names. */
const ZONE = /^[A-Za-z][\w+/-]{0,63}$/;

/** Corrects the case of a time zone name. @returns undefined for text that is none */
export function findTimeZone(text: string): string | undefined {
  if (!ZONE.test(text)) return undefined;
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions();
    // Intl also replaces a name by an older one of the same zone, such as Europe/Kyiv by Europe/Kiev.
    return timeZone.toLowerCase() === text.toLowerCase() ? timeZone : text;
  } catch {
    // Intl throws for an unknown time zone.
    return undefined;
  }
}

/** Corrects the case of a time zone name. @throws ServiceError validation_error */
export function timeZoneOf(text: string): string {
  const zone = findTimeZone(text);
  if (zone !== undefined) return zone;
  throw new ServiceError(
    'validation_error',
    'is not a time zone; enter a name such as Europe/Berlin, or UTC',
    'time_zone',
  );
}

/**
 * Parses a date and time field. Returns the first instant of a time that occurs twice, when clocks are set back.
 * @param timeZone a name of the IANA database
 * @returns an instant in the API's format
 * @throws ServiceError validation_error, also for a time that is skipped when clocks are set forward
 */
export function zonedInstant(text: string, timeZone: string, param: string): string {
  const refuse = () => new ServiceError('validation_error', 'is not a day and time', param);
  const asUtc = LOCAL.test(text) ? parseAsUtc(text) : undefined;
  if (asUtc === undefined) throw refuse();
  const { first } = instantsOf(asUtc, timeZone);
  if (first === undefined) {
    throw new ServiceError(
      'validation_error',
      'does not exist in this time zone, because clocks are put forward',
      param,
    );
  }
  const instant = inRange(first);
  if (!instant) throw refuse();
  return instant.toISOString();
}

/** Returns the first instant of a day. Where clocks are put forward at midnight, the day begins then. @returns undefined for no day */
export function startOfDay(day: string, timeZone: string): Date | undefined {
  return firstInstant(`${day}T00:00`, timeZone);
}

/**
 * Returns the first instant of a local time; of one that clocks skip, the moment when they are put forward.
 * @returns undefined for text that is none
 */
export function firstInstant(local: string, timeZone: string): Date | undefined {
  const asUtc = LOCAL.test(local) ? parseAsUtc(local) : undefined;
  if (asUtc === undefined) return undefined;
  const { first, skipped } = instantsOf(asUtc, timeZone);
  return inRange(first ?? skipped);
}

/** Parses a local time as if it were in UTC. @returns undefined also for years below 100, which `Date.UTC` moves to the 20th century */
function parseAsUtc(local: string): number | undefined {
  return local.startsWith('00') ? undefined : parseInstant(`${local}Z`)?.getTime();
}

/** @returns undefined for an instant that the API's format cannot express, such as one in the year 10000 */
function inRange(instant: number): Date | undefined {
  return parseInstant(new Date(instant).toISOString());
}

/**
 * Returns the first instant of a local time, which has none if clocks skip it, and the instant that it would have without a change of
 * clocks: the moment at which the skipped time begins.
 */
function instantsOf(asUtc: number, timeZone: string): { first: number | undefined; skipped: number } {
  // The offsets before and after a possible clock change near that time.
  const [before, after] = [asUtc - offsetAt(asUtc - DAY_MS, timeZone), asUtc - offsetAt(asUtc + DAY_MS, timeZone)];
  const instants = [before, after].filter((instant) => instant + offsetAt(instant, timeZone) === asUtc);
  return { first: instants.length === 0 ? undefined : Math.min(...instants), skipped: before };
}

const DAY_MS = 86_400_000;

/** Returns the value of a date and time field, to the minute. @param instant in the API's format */
export function zonedValue(instant: string, timeZone: string): string {
  const at = Date.parse(instant);
  return new Date(at + offsetAt(at, timeZone)).toISOString().slice(0, 16);
}

/**
 * Returns the value of a date and time field that means exactly this instant, with seconds only if they are not 0; undefined if
 * there is none, because the local time occurs twice.
 */
export function exactZonedValue(instant: Date, timeZone: string): string | undefined {
  const at = instant.getTime();
  const value = new Date(at + offsetAt(at, timeZone)).toISOString().replace(/(?::00)?\.000Z$|Z$/, '');
  return firstInstant(value, timeZone)?.getTime() === at ? value : undefined;
}

/** Formats an instant for a sentence, with the name of its zone. @param instant in the API's format */
export function zonedWords(instant: string, timeZone: string): string {
  const format = new Intl.DateTimeFormat('en', { timeZone, dateStyle: 'medium', timeStyle: 'short' });
  return `${format.format(Date.parse(instant))} (${timeZone})`;
}

/** Returns the milliseconds by which local time is ahead of UTC. @param instant Unix milliseconds */
function offsetAt(instant: number, timeZone: string): number {
  const options = { timeZone, hourCycle: 'h23', era: 'short' } as const;
  const digits = { year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit' } as const;
  const parts = new Intl.DateTimeFormat('en', { ...options, ...digits, second: '2-digit' }).formatToParts(instant);
  const part = (type: string) => Number(parts.find((each) => each.type === type)?.value);
  const second = Math.floor(instant / 1_000) * 1_000;
  const local = Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second'));
  return local - second;
}
