import type { NumberVerification } from '../../domain/chat/chat.ts';
import { traced } from '../http-trace.ts';
import { type TwilioAccount, twilioClient } from './client.ts';
import { classifyError } from './messages.ts';

/** A user waits for the answer. */
const TIMEOUT_SECONDS = 10;
const PAGE_SIZE = 1_000;
const MAX_SENDERS = 10_000;

const UNAVAILABLE: NumberVerification = { kind: 'unavailable', provider: 'Twilio' };

/**
 * Asks Twilio whether this number is a WhatsApp sender of the account
 * (https://www.twilio.com/docs/whatsapp/api/senders).
 */
export async function verifyTwilioNumber(account: TwilioAccount, number: string): Promise<NumberVerification> {
  const client = twilioClient({ timeoutSeconds: TIMEOUT_SECONDS, ...account });
  const { trace, result } = await traced(() =>
    client.messaging.v2.channelsSenders.list({ channel: 'whatsapp', pageSize: PAGE_SIZE, limit: MAX_SENDERS }),
  );
  if (result.status === 'fulfilled') {
    return result.value.some(({ senderId }) => senderId === `whatsapp:${number}`) ? { kind: 'verified' } : NO_SENDER;
  }
  const refusal = trace.failure ? undefined : classifyError(result.reason);
  return refusal?.kind === 'account' || refusal?.kind === 'refused' ? NO_ACCESS : UNAVAILABLE;
}

const NO_SENDER: NumberVerification = {
  kind: 'refused',
  param: 'number',
  message: 'is not a WhatsApp sender of this account at Twilio; only the account that owns a number can connect it',
};
const NO_ACCESS: NumberVerification = {
  kind: 'refused',
  param: 'auth_token',
  message: 'does not open the account at Twilio; the token of the account that owns the number is required',
};
