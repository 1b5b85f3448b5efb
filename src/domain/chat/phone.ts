import { controlProblem } from '../../lib/text.ts';
import { parseDigits, parsePhoneNumberFromString, type PhoneNumber } from 'libphonenumber-js/max';

export interface Phone {
  /** E.164: `+` and at most 15 digits. */
  readonly number: string;
  /** ISO 3166-1 alpha-2; undefined for a number without a country, such as +800 or a satellite phone. */
  readonly country: string | undefined;
}

/** Maximum length of a text that is parsed: 15 digits with separators, and the parameters of a `tel:` URI. */
const TEXT_LENGTH = 100;
const TEL_URI = /^tel:([^;]*)(?:;[\x21-\x7e]*)?$/i;
/** Matches digits with separators: spaces, dots, slashes, dashes and brackets, including typographic ones. */
const WRITTEN = /^\+[\d \u00A0\u202F./\-\u2010-\u2015()[\]]+$/;
const E164 = /^\+[1-9]\d{4,14}$/;
/** Mexico's numbering plan dropped this 1 in 2019. WhatsApp's ids still have it, and so do address books that were filled from them. */
const MEXICAN_WITH_1 = /^\+521(\d{10})$/;

export const PHONE_PROBLEMS = {
  form: 'must be an international telephone number that begins with +, such as +14165550123',
  impossible: 'is not a telephone number: its country code is unknown, or it is too long or too short',
  nowhere: 'belongs to no country, and only numbers of a country can be sent to',
} as const;

/** Ascension Island and Tristan da Cunha belong to SH; ISO 3166-1 only reserves codes of their own for them. */
const RESERVED: Readonly<Record<string, string>> = { AC: 'SH', TA: 'SH' };

/**
 * Parses a number in international form, or returns an error message. The length must be valid in its country. A number of
 * valid length that is not assigned yet is accepted, since numbering plans change faster than tables. The country is that of
 * the number if the plan defines it, otherwise the main country of the calling code.
 */
export function parsePhone(text: string): Phone | string {
  const written = unwrap(text);
  if (written === undefined) return PHONE_PROBLEMS.form;
  const digits = currentNumber(`+${written.replace(/\D/g, '')}`);
  const parsed = parsePhoneNumberFromString(digits);
  if (!parsed?.isPossible() || !E164.test(parsed.number)) return PHONE_PROBLEMS.impossible;
  // The parser removes one trunk prefix; with several of them the result would differ from the input.
  const isWhole = parsed.number === digits;
  if (!isWhole && parsePhoneNumberFromString(parsed.number)?.number !== parsed.number) return PHONE_PROBLEMS.impossible;
  return { number: parsed.number, country: countryOf(parsed) };
}

/**
 * Parses a number without comparing it with numbering plans, or returns an error message. WhatsApp keeps the ids of users from
 * before a country's numbers got more digits (Ivory Coast in 2021), and such ids are in no plan.
 */
export function parseAnyPhone(text: string): Phone | string {
  const phone = parsePhone(text);
  const number = currentNumber(`+${unwrap(text)?.replace(/\D/g, '') ?? ''}`);
  if (typeof phone !== 'string' || !E164.test(number)) return phone;
  return { number, country: countryOf(parsePhoneNumberFromString(number)) };
}

/** Returns the E.164 number that a user has now: WhatsApp reports some from before a change of the numbering plan. */
export function currentNumber(number: string): string {
  return number.replace(MEXICAN_WITH_1, '+52$1');
}

/** Replaces the prefix 00 of international calls by the plus. */
export function withPlus(text: string): string {
  return text.replace(/^([\s\p{Bidi_Control}]*(?:tel:)?)[0０]{2}(?=[^\p{Nd}]{0,3}[1-9１-９])/iu, '$1+');
}

/**
 * Removes what surrounds a number that was pasted: blanks, the marks of text direction that address books add, and the scheme and
 * parameters of a `tel:` URI (RFC 3966). Returns undefined if the rest is not written like a number in international form.
 */
function unwrap(text: string): string | undefined {
  if (text.length > TEXT_LENGTH || controlProblem(text) !== undefined) return undefined;
  const plain = text
    .normalize('NFKC')
    .replace(/\p{Bidi_Control}/gu, '')
    .trim();
  const number = (TEL_URI.exec(plain)?.[1] ?? plain).replace(/\p{Nd}/gu, (digit) => parseDigits(digit) || digit);
  return WRITTEN.test(number) ? number : undefined;
}

/** The library lists the main country of a calling code first, and none for codes without a country. */
function countryOf(parsed: PhoneNumber | undefined): string | undefined {
  const country = parsed?.country ?? parsed?.getPossibleCountries()[0];
  return country && (RESERVED[country] ?? country);
}

const BRAZILIAN_MOBILE = /^(\+55\d{2})9?([6-9]\d{7})$/;
const ARGENTINE = /^(\+54)9?(\d{10})$/;

/**
 * Returns the numbers that WhatsApp may report for the recipient of a message. Users in Brazil may have an id from before the ninth
 * digit, and ids in Argentina have a 9 that callers may leave out
 * (https://developers.facebook.com/docs/whatsapp/phone-numbers).
 * @param to E.164, or a user id, which has one form
 */
export function whatsAppForms(to: string): string[] {
  const [, prefix, rest] = BRAZILIAN_MOBILE.exec(to) ?? ARGENTINE.exec(to) ?? [];
  return prefix === undefined ? [to] : [`${prefix}${rest}`, `${prefix}9${rest}`];
}

/** Restores the `+` of a number in a query string, where an unescaped one is decoded as a space. */
export function phoneInQuery(text: string): string {
  return text.replace(/^ +(?=[\d(])/, '+');
}
