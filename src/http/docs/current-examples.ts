/** The date that the example times are relative to. */
const EXAMPLE_DATE = Date.parse('2026-03-02T00:00:00Z');
const EXAMPLE_DATES = /2026-03-\d\d(?=T)/g;
const EXAMPLE_SENDER = 'hello@example.com';
/** The address of the service in examples. Pages of the documentation show PUBLIC_URL instead if it is set. */
export const EXAMPLE_URL = 'http://127.0.0.1:3000';
const DAY_MS = 86_400_000;

/** Returns the API description as JSON text, with examples that are valid today. */
export type CurrentDescription = () => string;

/** @returns the whole days from EXAMPLE_DATE to `now` */
export function daysSinceExamples(now = Date.now()): number {
  return Math.floor((now - EXAMPLE_DATE) / DAY_MS);
}

/**
 * Shifts all example times in a text by `days`, so that `scheduled_at` is always a day ahead.
 * @param senderDomain sender domain in examples, so that a new user's requests are accepted without changes
 */
export function makeCurrent(text: string, days: number, senderDomain: string | undefined): string {
  const later = (date: string) => new Date(Date.parse(date) + days * DAY_MS).toISOString().slice(0, 10);
  const shifted = text.replace(EXAMPLE_DATES, later);
  return senderDomain === undefined ? shifted : shifted.replaceAll(EXAMPLE_SENDER, `hello@${senderDomain}`);
}

/** Creates the API description with current examples. The text is cached for the day. */
export function makeCurrentDescription(
  describe: () => object,
  senderDomain: string | undefined,
  now = Date.now,
): CurrentDescription {
  let description: { readonly days: number; readonly text: string } | undefined;
  return () => {
    const days = daysSinceExamples(now());
    if (description?.days !== days)
      description = { days, text: makeCurrent(JSON.stringify(describe()), days, senderDomain) };
    return description.text;
  };
}
