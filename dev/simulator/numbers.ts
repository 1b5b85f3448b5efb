/**
 * The numbers that every account has, at Twilio and Meta: North American numbers reserved for fiction. Meta's id of a number
 * is its digits.
 */
export const NUMBERS: readonly string[] = Array.from(
  { length: 100 },
  (_, index) => `+120255501${index < 10 ? '0' : ''}${index}`,
);
