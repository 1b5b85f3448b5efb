import type { Config } from '../../config.ts';
import type { NumberClaim, NumberVerification } from '../../domain/chat/chat.ts';
import { verifyMetaNumber } from '../../providers/meta/numbers.ts';
import { verifyTwilioNumber } from '../../providers/twilio/senders.ts';
import { twilioAccount } from './chat-providers.ts';

/** Verifies at the provider of the settings that a number belongs to the account of a token. */
export function makeVerifyNumber(config: Config): (claim: NumberClaim) => Promise<NumberVerification> {
  return async ({ provider, number, phone_number_id: phoneNumberId, account_sid, token }) => {
    if (provider === 'meta') {
      const settings = { phoneNumberId: phoneNumberId ?? '', accessToken: token, baseUrl: config.META_BASE_URL };
      return verifyMetaNumber(settings, number);
    }
    const account = twilioAccount(config, account_sid, token);
    if (!account) return { kind: 'refused', param: 'account_sid', message: 'is required' };
    return verifyTwilioNumber(account, number);
  };
}
