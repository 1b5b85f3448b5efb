import type { NumberVerification } from '../../domain/chat/chat.ts';
import { traced } from '../http-trace.ts';
import { type MetaSettings, phoneNumberUrl, request } from './meta.ts';
import { classifyMetaRefusal, readError } from './errors.ts';

/** A user waits for the answer. */
const TIMEOUT_SECONDS = 10;

const UNAVAILABLE: NumberVerification = { kind: 'unavailable', provider: 'Meta' };

/**
 * Asks Meta whether the phone number id belongs to this number and the token may use it
 * (https://developers.facebook.com/docs/graph-api/reference/whats-app-business-account-to-number-current-status/).
 */
export async function verifyMetaNumber(settings: MetaSettings, number: string): Promise<NumberVerification> {
  const url = `${phoneNumberUrl(settings)}?fields=display_phone_number`;
  const { result } = await traced(() => request(settings, url, TIMEOUT_SECONDS));
  if (result.status === 'rejected') return UNAVAILABLE;
  const { status, body } = result.value;
  if (status >= 300 || body === undefined || body['error'] !== undefined) {
    const { kind } = classifyMetaRefusal(status, readError(body?.['error']));
    return kind === 'account' || kind === 'refused' ? NO_ACCESS : UNAVAILABLE;
  }
  return digits(body['display_phone_number']) === digits(number) ? { kind: 'verified' } : OTHER_NUMBER;
}

const NO_ACCESS: NumberVerification = {
  kind: 'refused',
  param: 'access_token',
  message: 'gives no access to this phone_number_id at Meta; a token of the account that owns the number is required',
};
const OTHER_NUMBER: NumberVerification = {
  kind: 'refused',
  param: 'number',
  message: 'is not the number that this phone_number_id has at Meta; the two must belong together',
};

/** Meta writes a number with spaces and hyphens, with or without the plus. */
function digits(value: unknown): string {
  return typeof value === 'string' ? value.replaceAll(/\D/g, '') : '';
}
