/** The date for which example times are written. */
const EXAMPLE_DATE = Date.parse('2026-03-02T00:00:00Z');
const EXAMPLE_DATES = /2026-03-\d\d(?=T)/g;
const EXAMPLE_SENDER = 'hello@example.com';
const DAY_MS = 86_400_000;

/** @returns the API description as JSON text, with examples that are valid when it is read */
export type CurrentDescription = () => string;

/**
 * Shifts all example times by the days since EXAMPLE_DATE, so that `scheduled_at` is always a day ahead.
 * @param senderDomain sender domain in examples, so that a new user's requests are accepted without changes
 */
export function makeCurrentDescription(
  describe: () => object,
  senderDomain: string | undefined,
  now = Date.now,
): CurrentDescription {
  let made: { readonly days: number; readonly text: string } | undefined;
  return () => {
    const days = Math.floor((now() - EXAMPLE_DATE) / DAY_MS);
    if (made?.days === days) return made.text;
    const later = (date: string) => new Date(Date.parse(date) + days * DAY_MS).toISOString().slice(0, 10);
    let text = JSON.stringify(describe()).replace(EXAMPLE_DATES, later);
    if (senderDomain !== undefined) text = text.replaceAll(EXAMPLE_SENDER, `hello@${senderDomain}`);
    made = { days, text };
    return text;
  };
}
