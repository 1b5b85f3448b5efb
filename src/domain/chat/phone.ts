import { parsePhoneNumberFromString } from 'libphonenumber-js/max';

/** A telephone number as it was understood. */
export interface Phone {
  /** E.164: `+` and at most 15 digits. */
  readonly number: string;
  /** ISO 3166-1 alpha-2, or undefined for a number that belongs to no country, such as +800 or a satellite phone. */
  readonly country: string | undefined;
}

/** Longest text that is looked at: 15 digits with room for what people put between them. */
const TEXT_LENGTH = 50;
/** What may stand between the digits: spaces, dots, dashes and brackets, also those of word processors. */
const WRITTEN = /^\+[\d \u00A0\u202F.\-\u2010-\u2015()[\]]+$/;
const E164 = /^\+[1-9]\d{4,14}$/;

export const PHONE_PROBLEMS = {
  form: 'must be an international telephone number that begins with +, such as +14165550123',
  impossible: 'is not a telephone number: its country code is unknown, or it is too long or too short',
  nowhere: 'belongs to no country, and only numbers of a country can be sent to',
} as const;

/** Parts of a country with a calling code, and a code that ISO 3166-1 only reserves: what the standard has instead. */
const RESERVED: Readonly<Record<string, string>> = { AC: 'SH', TA: 'SH' };

/**
 * Reads a number in international form; text instead says what is wrong with it.
 *
 * Its length must be one that its country has; a number of such a length that nobody holds yet is taken, since plans change
 * faster than tables. The country is the number's own where the plan tells it, else the main one of its calling code.
 */
export function parsePhone(text: string): Phone | string {
  if (text.length > TEXT_LENGTH || !WRITTEN.test(text)) return PHONE_PROBLEMS.form;
  const parsed = parsePhoneNumberFromString(text);
  if (!parsed?.isPossible() || !E164.test(parsed.number)) return PHONE_PROBLEMS.impossible;
  // A trunk prefix is dropped once: with several of them it would be another number the next time.
  const isWhole = parsed.number === `+${text.replace(/\D/g, '')}`;
  if (!isWhole && parsePhoneNumberFromString(parsed.number)?.number !== parsed.number) return PHONE_PROBLEMS.impossible;
  // The library lists the main country of a calling code first, and none for codes that are of no country.
  const country = parsed.country ?? parsed.getPossibleCountries()[0];
  return { number: parsed.number, country: country && (RESERVED[country] ?? country) };
}

/** What is wrong with a number, if anything. */
export function phoneProblem(text: string): string | undefined {
  const phone = parsePhone(text);
  return typeof phone === 'string' ? phone : undefined;
}

/** What is wrong with a number that a message shall go to, if anything. */
export function recipientProblem(text: string): string | undefined {
  const phone = parsePhone(text);
  if (typeof phone === 'string') return phone;
  return phone.country === undefined ? PHONE_PROBLEMS.nowhere : undefined;
}

/** A number in a query string, where a `+` that was not escaped has become a blank. */
export function phoneInQuery(text: string): string {
  return text.replace(/^ /, '+');
}
