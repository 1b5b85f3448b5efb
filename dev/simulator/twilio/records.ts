import { type DueChatReport, chatReportsOf, isWindowClosed } from '../chat-call.ts';
import type { InboxChat } from '../inbox/message.ts';
import type { ChatReportKind } from '../magic.ts';
import { CONTENTS, render } from './contents.ts';
import { sizeOf } from '../../../src/domain/sms/segments.ts';
import { CODE, SWITCHED_OFF_ERROR, UNREACHABLE_ERROR, WINDOW_CLOSED } from './errors.ts';

/** Returns Twilio's status for a report. Chat-app messages that fail are undelivered. */
export function statusOf({ channel }: InboxChat, kind: ChatReportKind): string {
  return kind === 'failed' && channel !== 'sms' ? 'undelivered' : kind;
}

/** Returns the code and message of a status; undefined if it is not a failure. */
export function errorOf(chat: InboxChat, kind: ChatReportKind | undefined) {
  if (kind !== 'failed' && kind !== 'undelivered') return undefined;
  if (isWindowClosed(chat)) return { code: CODE.windowClosed, message: WINDOW_CLOSED };
  return chat.channel === 'sms'
    ? { code: CODE.switchedOff, message: SWITCHED_OFF_ERROR }
    : { code: CODE.unreachable, message: UNREACHABLE_ERROR };
}

/** Returns the sender and recipient in Twilio's format. */
export function endpointsOf({ channel, from, to }: InboxChat) {
  const prefix = channel === 'sms' ? '' : 'whatsapp:';
  const isService = from.startsWith('MG');
  return { from: isService ? null : prefix + from, messagingServiceSid: isService ? from : null, to: prefix + to };
}

/** Returns the past reports about a message, latest last. @param now Unix milliseconds */
function pastReports(chat: InboxChat, after: number, now: number): DueChatReport[] {
  return chatReportsOf(chat, after).filter(({ at }) => at <= now);
}

/**
 * Returns a message in the format of https://www.twilio.com/docs/messaging/api/message-resource.
 * @param after milliseconds between a message and the first report about it
 */
export function messageRecord(chat: InboxChat, account: string, after: number, now: number): object {
  const reports = pastReports(chat, after, now);
  const last = reports.at(-1);
  const sentReport = reports.find(({ kind }) => kind === 'sent');
  const uri = `/2010-04-01/Accounts/${account}/Messages/${chat.id}`;
  const error = errorOf(chat, last?.kind);
  const { from, to, messagingServiceSid } = endpointsOf(chat);
  return {
    account_sid: account,
    api_version: '2010-04-01',
    body: bodyOf(chat),
    date_created: twilioTime(Date.parse(chat.received_at)),
    date_sent: sentReport ? twilioTime(sentReport.at) : null,
    date_updated: twilioTime(last?.at ?? Date.parse(chat.received_at)),
    direction: 'outbound-api',
    error_code: error?.code ?? null,
    error_message: error?.message ?? null,
    from,
    messaging_service_sid: messagingServiceSid,
    num_media: chat.media ? '1' : '0',
    num_segments: String(chat.channel === 'sms' ? sizeOf(chat.text ?? '').segments : 1),
    price: null,
    price_unit: null,
    sid: chat.id,
    status: last ? statusOf(chat, last.kind) : 'queued',
    subresource_uris: { media: `${uri}/Media.json` },
    to,
    uri: `${uri}.json`,
  };
}

function bodyOf({ text, media, template }: InboxChat): string {
  if (!template) return text ?? media?.caption ?? '';
  const content = CONTENTS.find(({ sid }) => sid === template['content_sid']);
  return content ? render(content, template['variables'] as Record<string, string>) : '';
}

/** Formats a time as Twilio does: RFC 2822, in whole seconds. */
function twilioTime(milliseconds: number): string {
  return new Date(milliseconds).toUTCString().replace('GMT', '+0000');
}
