import { createHmac, randomBytes } from 'node:crypto';
import type { Behaviour } from '../behaviour.ts';
import { type ChatParts, chatReportsOf, scheduleReports } from '../chat-call.ts';
import type { InboxChat } from '../inbox/message.ts';
import type { ChatReportKind } from '../magic.ts';
import { NUMBERS } from '../numbers.ts';
import type { Post } from '../posts.ts';
import { endpointsOf, errorOf, statusOf } from './records.ts';

/** All retries of a callback take place within this time. */
const RETRY_WINDOW_MS = 15_000;
const DEFAULT_RETRY_COUNT = 1;

/** The account of a message, whose token signs its callbacks. */
export interface Account {
  readonly sid: string;
  readonly token: string;
}

/** Posts the statuses of a message to its callback URL. */
export function expectStatuses(
  chat: InboxChat,
  statusCallback: string,
  account: Account,
  parts: ChatParts,
  behaviour: Behaviour,
): void {
  const dues = chatReportsOf(chat, parts.reportAfter);
  parts.posts.add(
    scheduleReports(dues, behaviour).map(({ kind, at }) => {
      const params = paramsOf(chat, kind, account.sid);
      return { id: chat.id, at, ...postTo(statusCallback, account.token, params, parts.retries) };
    }),
  );
}

/** https://www.twilio.com/docs/messaging/guides/track-outbound-message-status */
function paramsOf(chat: InboxChat, kind: ChatReportKind, account: string): URLSearchParams {
  const { from, to, messagingServiceSid } = endpointsOf(chat);
  const status = statusOf(chat, kind);
  const error = errorOf(chat, kind);
  return new URLSearchParams({
    AccountSid: account,
    ApiVersion: '2010-04-01',
    ...(chat.channel !== 'sms' && {
      ChannelInstallSid: 'XE00000000000000000000000000000000',
      ChannelPrefix: 'whatsapp',
      ChannelToAddress: chat.to,
      StructuredMessage: 'false',
    }),
    From: from ?? numberOfService(),
    MessageSid: chat.id,
    MessageStatus: status,
    ...(messagingServiceSid !== null && { MessagingServiceSid: messagingServiceSid }),
    SmsSid: chat.id,
    SmsStatus: status,
    To: to,
    ...(kind === 'read' && { EventType: 'READ' }),
    ...(error && { ErrorCode: String(error.code), ErrorMessage: error.message }),
  });
}

/** Returns the number from which every messaging service sends. */
function numberOfService(): string {
  return NUMBERS[0] ?? '';
}

/**
 * Posts a text of an SMS recipient, https://www.twilio.com/docs/messaging/guides/webhook-request.
 * @param url the URL to which the account's numbers report inbound messages
 * @returns its id
 */
export function replyBySms(chat: InboxChat, text: string, url: string, account: Account, parts: ChatParts): string {
  const { from, messagingServiceSid } = endpointsOf(chat);
  const id = `SM${randomBytes(16).toString('hex')}`;
  const params = new URLSearchParams({
    AccountSid: account.sid,
    ApiVersion: '2010-04-01',
    Body: text,
    From: chat.to,
    MessageSid: id,
    ...(messagingServiceSid !== null && { MessagingServiceSid: messagingServiceSid }),
    NumMedia: '0',
    SmsMessageSid: id,
    SmsSid: id,
    SmsStatus: 'received',
    To: from ?? numberOfService(),
  });
  parts.posts.add([{ id, at: Date.now(), ...postTo(url, account.token, params, parts.retries) }]);
  return id;
}

/**
 * Returns a signed post to a callback URL. The URL's fragment determines its retries and is not part of the signed URL:
 * https://www.twilio.com/docs/usage/webhooks/webhooks-connection-overrides.
 * @param delays milliseconds before each retry, of which it uses as many as the fragment allows
 */
export function postTo(
  callback: string,
  token: string,
  params: URLSearchParams,
  delays: readonly number[],
): Omit<Post, 'id' | 'at'> {
  const [url = '', fragment = ''] = callback.split('#', 2);
  const overrides = new URLSearchParams(fragment);
  const policies = overrides.get('rp')?.split(',') ?? [];
  const content = signed(token, url, params);
  return {
    url,
    retries: retriesOf(Number(overrides.get('rc') ?? DEFAULT_RETRY_COUNT), delays),
    content: () => content,
    isRetried: (status) => policies.includes('all') || policies.includes(status < 500 ? '4xx' : '5xx'),
  };
}

function signed(token: string, url: string, params: URLSearchParams) {
  const headers = {
    'content-type': 'application/x-www-form-urlencoded; charset=UTF-8',
    'user-agent': 'TwilioProxy/1.1',
    'x-twilio-signature': sign(token, url, params),
  };
  return { headers, body: params.toString() };
}

/** https://www.twilio.com/docs/usage/security#validating-requests; each name occurs once. */
function sign(token: string, url: string, params: URLSearchParams): string {
  const sorted = [...params].sort(([a], [b]) => (a < b ? -1 : 1));
  return createHmac('sha1', token)
    .update(url + sorted.flat().join(''))
    .digest('base64');
}

function retriesOf(count: number, delays: readonly number[]): number[] {
  let sum = 0;
  return delays.slice(0, count).filter((delay) => (sum += delay) <= RETRY_WINDOW_MS);
}
