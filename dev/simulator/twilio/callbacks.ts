import { createHmac, randomBytes } from 'node:crypto';
import type { Behaviour } from '../behaviour.ts';
import { type ChatParts, chatReportsOf, scheduleReports } from '../chat-call.ts';
import type { InboxChat } from '../inbox/message.ts';
import type { ChatReportKind } from '../magic.ts';
import { NUMBERS } from '../numbers.ts';
import { endpointsOf, errorOf, statusOf } from './records.ts';

/** All retries of a callback take place within this time. */
const RETRY_WINDOW_MS = 15_000;

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
  const [url = '', fragment = ''] = statusCallback.split('#', 2);
  const retries = retriesOf(fragment, parts.retries);
  const dues = chatReportsOf(chat, parts.reportAfter);
  parts.posts.add(
    scheduleReports(dues, behaviour).map(({ kind, at }) => {
      const content = signed(account.token, url, paramsOf(chat, kind, account.sid));
      return { id: chat.id, url, at, retries, content: () => content };
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
  parts.posts.add([
    { id, url, at: Date.now(), retries: parts.retries, content: () => signed(account.token, url, params) },
  ]);
  return id;
}

export function signed(token: string, url: string, params: URLSearchParams) {
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

/** Returns the delays of retries. The fragment's `rc` is their number, 1 by default; all are within 15 seconds. */
function retriesOf(fragment: string, waits: readonly number[]): number[] {
  const count = Number(new URLSearchParams(fragment).get('rc') ?? 1);
  let sum = 0;
  return waits.slice(0, count).filter((wait) => (sum += wait) <= RETRY_WINDOW_MS);
}
