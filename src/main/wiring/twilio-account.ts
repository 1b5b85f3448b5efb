import type { Config } from '../../config.ts';
import type { TwilioAccount } from '../../providers/twilio/client.ts';

/** Returns the Twilio account of a number, or that of the settings; undefined without credentials. */
export function twilioAccount(config: Config, ownSid: string | null = null, own?: string): TwilioAccount | undefined {
  const accountSid = ownSid ?? config.TWILIO_ACCOUNT_SID;
  const authToken = own ?? config.TWILIO_AUTH_TOKEN;
  if (accountSid === undefined || authToken === undefined) return undefined;
  return { accountSid, authToken, baseUrl: config.TWILIO_BASE_URL };
}
