import type { Config } from '../../config.ts';
import type { NumberClaim, NumberVerification } from '../../domain/chat/chat.ts';
import { verifyMetaNumber } from '../../providers/meta/numbers.ts';
import { twilioAccount } from './twilio-account.ts';

/** Returns a function that verifies at the provider that a number belongs to the account of a token. */
export function makeVerifyNumber(config: Config): (claim: NumberClaim) => Promise<NumberVerification> {
  return async ({ provider, number, phone_number_id: phoneNumberId, account_sid, token }) => {
    if (provider === 'meta') {
      const settings = { phoneNumberId: phoneNumberId ?? '', accessToken: token, baseUrl: config.META_BASE_URL };
      return verifyMetaNumber(settings, number);
    }
    const account = twilioAccount(config, account_sid, token);
    if (!account) return { kind: 'refused', param: 'account_sid', message: 'is required' };
    // Imported dynamically: Twilio's SDK is large, and most API processes never verify a number.
    const { verifyTwilioNumber } = await import('../../providers/twilio/senders.ts');
    return verifyTwilioNumber(account, number);
  };
}
