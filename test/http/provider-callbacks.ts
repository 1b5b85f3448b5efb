import { createHmac } from 'node:crypto';
import { CHAT_CALLBACKS } from './service.ts';

/**
 * A signed callback as Twilio posts it.
 * @param url that is signed, with its query
 * @see https://www.twilio.com/docs/usage/security
 */
export function twilioRequest(url: string, fields: Record<string, string>, token = CHAT_CALLBACKS.twilioAuthToken) {
  const sorted = Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1));
  const signature = createHmac('sha1', token)
    .update(url + sorted.flat().join(''))
    .digest('base64');
  return {
    raw: new URLSearchParams(fields).toString(),
    headers: {
      'content-type': 'application/x-www-form-urlencoded; charset=utf-8',
      'x-twilio-signature': signature,
    },
  };
}

/** X-Hub-Signature-256 (https://developers.facebook.com/docs/graph-api/webhooks/getting-started). */
export function metaSignature(body: string | Buffer, secret = CHAT_CALLBACKS.metaAppSecret): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}

/** A signed callback as Meta posts it. */
export function metaRequest(raw: string | Buffer, signature = metaSignature(raw)) {
  return { raw, headers: { 'content-type': 'application/json', 'x-hub-signature-256': signature } };
}
