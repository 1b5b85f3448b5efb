import { createHmac } from 'node:crypto';
import type { Behaviour } from '../behaviour.ts';
import { type ChatParts, chatReportsOf, turnsOf } from '../chat-call.ts';
import type { InboxChat } from '../inbox/message.ts';
import type { ChatReportKind } from '../magic.ts';
import { CODE, UNREACHABLE } from './errors.ts';
import { STATUS } from './records.ts';

/** All retries of a callback are within this time. */
const RETRY_WINDOW_MS = 15_000;

/** The account that a message is of, by whose token its callbacks are signed. */
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
  const dues = chatReportsOf(chat.to, Date.parse(chat.received_at), parts.reportAfter);
  parts.posts.add(
    turnsOf(dues, behaviour).map(({ kind, at }) => {
      const params = paramsOf(chat, kind, account.sid);
      const headers = {
        'content-type': 'application/x-www-form-urlencoded; charset=UTF-8',
        'user-agent': 'TwilioProxy/1.1',
        'x-twilio-signature': sign(account.token, url, params),
      };
      return { id: chat.id, url, at, retries, content: () => ({ headers, body: params.toString() }) };
    }),
  );
}

/** https://www.twilio.com/docs/messaging/guides/track-outbound-message-status */
function paramsOf(chat: InboxChat, kind: ChatReportKind, account: string): URLSearchParams {
  return new URLSearchParams({
    AccountSid: account,
    ApiVersion: '2010-04-01',
    ChannelInstallSid: 'XE00000000000000000000000000000000',
    ChannelPrefix: 'whatsapp',
    ChannelToAddress: chat.to,
    From: `whatsapp:${chat.from}`,
    MessageSid: chat.id,
    MessageStatus: STATUS[kind],
    SmsSid: chat.id,
    SmsStatus: STATUS[kind],
    StructuredMessage: 'false',
    To: `whatsapp:${chat.to}`,
    ...(kind === 'read' && { EventType: 'READ' }),
    ...(kind === 'failed' && { ErrorCode: String(CODE.unreachable), ErrorMessage: UNREACHABLE }),
  });
}

/** https://www.twilio.com/docs/usage/security#validating-requests; each name occurs once. */
function sign(token: string, url: string, params: URLSearchParams): string {
  const sorted = [...params].sort(([a], [b]) => (a < b ? -1 : 1));
  return createHmac('sha1', token)
    .update(url + sorted.flat().join(''))
    .digest('base64');
}

/** The fragment's `rc` is the number of retries, 1 by default; all are within 15 seconds. */
function retriesOf(fragment: string, waits: readonly number[]): number[] {
  const count = Number(new URLSearchParams(fragment).get('rc') ?? 1);
  let sum = 0;
  return waits.slice(0, count).filter((wait) => (sum += wait) <= RETRY_WINDOW_MS);
}
