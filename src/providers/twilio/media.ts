import type { TwilioAccount } from './client.ts';

/**
 * Fetches a file by its path at Twilio, which redirects to its location
 * (https://www.twilio.com/docs/messaging/api/media-resource). Rejects as the fetch does.
 */
export function twilioMedia(
  { accountSid, authToken, baseUrl = 'https://api.twilio.com' }: TwilioAccount,
  path: string,
) {
  const authorization = `Basic ${Buffer.from(`${accountSid}:${authToken}`).toString('base64')}`;
  return (fetchFile: (url: string, authorization: string) => Promise<Buffer>): Promise<Buffer> =>
    fetchFile(baseUrl.replace(/\/$/, '') + path, authorization);
}
