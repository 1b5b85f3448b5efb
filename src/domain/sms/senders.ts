import { isSupportedCountry } from 'libphonenumber-js/max';
import { parsePhone } from '../chat/phone.ts';

/** A sender of the operator's Twilio account: a number, a short code or a messaging service. */
export interface SmsSender {
  readonly id: string;
  /** E.164, or a short code. */
  readonly number: string | null;
  readonly messaging_service_sid: string | null;
  /** ISO 3166-1 alpha-2 countries of the recipients that it serves; empty for all. */
  readonly countries: readonly string[];
  readonly created_at: string;
}

const SHORT_CODE = /^\d{3,8}$/;
const MESSAGING_SERVICE = /^MG[0-9a-f]{32}$/;

/** Returns the number or messaging service that messages have as `from`. */
export function addressOf({
  number,
  messaging_service_sid,
}: Pick<SmsSender, 'number' | 'messaging_service_sid'>): string {
  return number ?? messaging_service_sid ?? '';
}

export const COUNTRY_PROBLEM = 'must be a country by ISO 3166-1 alpha-2, such as US';

export function isCountry(code: string): boolean {
  return isSupportedCountry(code);
}

export const SENDER_PROBLEM =
  'must be an international telephone number that begins with +, a short code of 3 to 8 digits, or MG and 32 hexadecimal digits';

export function isMessagingService(sender: string): boolean {
  return MESSAGING_SERVICE.test(sender);
}

/** Returns a number in E.164, a short code or the SID of a messaging service; undefined if the text is none of them. */
export function parseSender(text: string): string | undefined {
  if (SHORT_CODE.test(text) || MESSAGING_SERVICE.test(text)) return text;
  const phone = parsePhone(text);
  return typeof phone === 'string' ? undefined : phone.number;
}
