import type { NumberVerification } from '../../domain/chat/chat.ts';
import { traced, tracedFetch } from '../http-trace.ts';
import { parseObject } from '../json-fields.ts';
import { type MetaSettings, phoneNumberUrl } from './meta.ts';
import { classifyMetaRefusal, readError } from './errors.ts';

/** Seconds; a user waits for the answer. */
const TIMEOUT = 10;

const UNAVAILABLE: NumberVerification = { kind: 'unavailable', provider: 'Meta' };

/**
 * Asks Meta whether the phone number id belongs to this number and the token may use it
 * (https://developers.facebook.com/docs/graph-api/reference/whats-app-business-account-to-number-current-status/).
 */
export async function verifyMetaNumber(settings: MetaSettings, number: string): Promise<NumberVerification> {
  const { accessToken, timeout = TIMEOUT } = settings;
  const { result } = await traced(async () => {
    const response = await tracedFetch(`${phoneNumberUrl(settings)}?fields=display_phone_number`, {
      headers: { authorization: `Bearer ${accessToken}` },
      signal: AbortSignal.timeout(timeout * 1_000),
    });
    return { status: response.status, text: await response.text() };
  });
  if (result.status === 'rejected') return UNAVAILABLE;
  const { status, text } = result.value;
  const body = parseObject(text);
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
