/**
 * The numbers that every account has, at Twilio and at Meta: those of North America that are kept for fiction. Meta's id of
 * one is its digits.
 */
export const NUMBERS: readonly string[] = Array.from(
  { length: 100 },
  (_, index) => `+120255501${index < 10 ? '0' : ''}${index}`,
);
