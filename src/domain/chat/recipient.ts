import { isSupportedCountry } from 'libphonenumber-js/max';
import { parseAnyPhone, parsePhone, PHONE_PROBLEMS, phoneInQuery, withPlus } from './phone.ts';

/** The destination of a message: a phone number, or a chat-app user whose number may be unknown. */
export interface Recipient {
  /** E.164, or a business-scoped user id. */
  readonly to: string;
  /** ISO 3166-1 alpha-2. */
  readonly country: string;
}

/**
 * A business-scoped user id: the user's country and at most 128 letters or digits; `ENT` marks one that linked businesses
 * share (https://developers.facebook.com/documentation/business-messaging/whatsapp/business-scoped-user-ids).
 */
const USER_ID = /^[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}$/;
/** Matches text that was probably meant as a user id and not as a number. */
const LIKE_USER_ID = /^[A-Za-z]{2}\./;

export const USER_ID_PROBLEM =
  'is not a WhatsApp user id: a country code, a dot and at most 128 letters or digits are required, such as US.13491208655302741918';

export function isUserId(text: string): boolean {
  return USER_ID.test(text);
}

/** Parses a recipient in a request, or returns an error message. */
export function parseRecipient(text: string): Recipient | string {
  if (!LIKE_USER_ID.test(text)) return parsePhoneRecipient(text);
  const country = text.slice(0, 2);
  return isUserId(text) && isSupportedCountry(country) ? { to: text, country } : USER_ID_PROBLEM;
}

/** Parses the recipient of an SMS, in any notation for calls from another country, or returns an error message. */
export function parseSmsRecipient(text: string): Recipient | string {
  return parsePhoneRecipient(withPlus(text));
}

/** Parses a recipient that must be a phone number, or returns an error message. */
export function parsePhoneRecipient(text: string): Recipient | string {
  const phone = parsePhone(text);
  if (typeof phone === 'string') return phone;
  return phone.country === undefined ? PHONE_PROBLEMS.nowhere : { to: phone.number, country: phone.country };
}

/** The country of a user whose number belongs to none: CLDR's code of an unknown region. */
const UNKNOWN_COUNTRY = 'ZZ';

/**
 * Parses a recipient as `parseRecipient` does, but accepts a number that is in no numbering plan: a user may have written from it,
 * and can then be answered.
 */
export function parseContact(text: string): Recipient | string {
  if (LIKE_USER_ID.test(text)) return parseRecipient(text);
  const phone = parseAnyPhone(text);
  return typeof phone === 'string' ? phone : { to: phone.number, country: phone.country ?? UNKNOWN_COUNTRY };
}

/** Parses the recipient of a chat-app message in a query, or returns an error message. */
export function parseRecipientQuery(text: string): Pick<Recipient, 'to'> | string {
  if (LIKE_USER_ID.test(text)) return isUserId(text) ? { to: text } : USER_ID_PROBLEM;
  const phone = parseAnyPhone(phoneInQuery(text));
  return typeof phone === 'string' ? phone : { to: phone.number };
}

/** Parses the recipient of an SMS in a query, or returns an error message. */
export function parsePhoneQuery(text: string): Pick<Recipient, 'to'> | string {
  const phone = parsePhone(withPlus(phoneInQuery(text)));
  return typeof phone === 'string' ? phone : { to: phone.number };
}
