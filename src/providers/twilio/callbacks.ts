// The package's root exports it too, but costs each API process 15 MB of memory more.
import { validateRequest } from 'twilio/lib/webhooks/webhooks.js';
import { collectFields } from '../../lib/form-fields.ts';
import { bodyProblem } from '../../lib/text.ts';
import type { ChatReport } from '../chat-provider.ts';
import { twilioSentence } from './errors.ts';

/**
 * URL fragment: Twilio retries a callback five times after any failure, within 15 seconds. Without it, Twilio retries once and
 * only if it cannot connect, https://www.twilio.com/docs/usage/webhooks/webhooks-connection-overrides.
 */
export const CALLBACK_RETRIES = '#rc=5&rp=all';

/**
 * Returns true if `X-Twilio-Signature` was made with the account's token, https://www.twilio.com/docs/usage/security.
 * Compares in constant time.
 * @param url as registered at Twilio, without a fragment; a standard port may be left out
 */
export function isTwilioSignature(
  authToken: string,
  url: string,
  params: URLSearchParams,
  signature: string | undefined,
): boolean {
  if (!signature || authToken === '' || !URL.canParse(url)) return false;
  return validateRequest(authToken, signature, url, collectFields(params));
}

/**
 * Parses a callback about a message's status, https://www.twilio.com/docs/messaging/guides/track-outbound-message-status.
 * @param params the form's fields
 * @param messageId ours, from the callback's URL
 * @returns undefined if it concerns no message of ours, or its status is unknown
 */
export function readTwilioCallback(params: URLSearchParams, messageId: string | undefined): ChatReport | undefined {
  const report = readTwilioStatus(
    {
      sid: params.get('MessageSid') ?? params.get('SmsSid'),
      status: params.get('MessageStatus') ?? params.get('SmsStatus'),
      errorCode: params.get('ErrorCode'),
      // `ChannelStatusMessage` is the message of the chat app itself.
      errorMessage: params.get('ErrorMessage') ?? params.get('ChannelStatusMessage'),
    },
    messageId,
  );
  if (!report) return undefined;
  // A messaging service chooses the number that it sends from.
  const from = params.has('MessagingServiceSid') ? undefined : withoutChannelPrefix(params.get('From'));
  const to = withoutChannelPrefix(params.get('To'));
  if (from === undefined && to === undefined) return report;
  return { ...report, endpoints: { ...(from !== undefined && { from }), ...(to !== undefined && { to }) } };
}

/** Returns `whatsapp:+…` as E.164. */
function withoutChannelPrefix(address: string | null): string | undefined {
  return address?.replace(/^whatsapp:/, '');
}

/** A text that a recipient sent to one of our senders. */
export interface InboundSms {
  readonly providerMessageId: string;
  /** E.164. */
  readonly from: string;
  readonly to: string;
  /** Null if the number is in no messaging service. */
  readonly messagingServiceSid: string | null;
  readonly text: string;
  /** STOP, START or HELP if the text is a keyword of the messaging service's Advanced Opt-Out; null without that. */
  readonly optOutType: string | null;
}

/** Parses a callback about an inbound SMS, https://www.twilio.com/docs/messaging/guides/webhook-request. */
export function readInboundSms(params: URLSearchParams): InboundSms | undefined {
  const field = (name: string) => params.get(name)?.replaceAll('\0', '');
  const [providerMessageId, from, to] = [field('MessageSid'), field('From'), field('To')];
  if (!providerMessageId || !from || !to) return undefined;
  // A message of the chat app, whose callback may be signed with the token of one organization's number.
  if ([from, to].some((address) => address.startsWith('whatsapp:'))) return undefined;
  return {
    providerMessageId,
    from,
    to,
    messagingServiceSid: field('MessagingServiceSid') ?? null,
    text: field('Body') ?? '',
    optOutType: field('OptOutType') ?? null,
  };
}

/** A message's status, by a callback or by its record. */
interface TwilioStatus {
  readonly sid: string | null;
  readonly status: string | null;
  readonly errorCode: string | number | null;
  readonly errorMessage: string | null;
}

/**
 * Twilio's statuses of chat-app messages; SMS have the status `undelivered` themselves. All statuses before `sent` mean that
 * Twilio has the message.
 */
const CHANGES: Readonly<Record<string, ChatReport['change']>> = {
  accepted: 'sent',
  scheduled: 'sent',
  queued: 'sent',
  sending: 'sent',
  sent: 'sent',
  delivered: 'delivered',
  read: 'read',
  undelivered: 'failed',
  failed: 'failed',
  canceled: 'failed',
};

/** Converts a status from a callback or from the message's record; undefined for an unknown one. */
export function readTwilioStatus(current: TwilioStatus, messageId: string | undefined): ChatReport | undefined {
  const { sid, status, errorCode, errorMessage } = current;
  if (!sid || bodyProblem(sid) || !status || !Object.hasOwn(CHANGES, status)) return undefined;
  const isUndelivered = status === 'undelivered' && messageId?.startsWith('sms_') === true;
  const change = isUndelivered ? 'undelivered' : (CHANGES[status] as ChatReport['change']);
  const report = { change, messageId, providerMessageId: sid, dedupeKey: `${sid} ${change}` };
  if (change !== 'failed' && change !== 'undelivered') return report;
  const code = Number(errorCode) || undefined;
  const text = errorMessage && !bodyProblem(errorMessage) ? errorMessage : undefined;
  const words = text ?? (status === 'canceled' ? 'it was canceled at Twilio' : undefined);
  return {
    ...report,
    error: twilioSentence('Twilio could not deliver it', code, words),
    ...(code !== undefined && { errorCode: String(code) }),
  };
}
