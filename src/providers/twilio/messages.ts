import type { OutgoingChat } from '../../domain/chat/chat.ts';
import type { ChatOutcome, ChatProvider, ChatReport } from '../chat-provider.ts';
import { classifyUnanswered, type Trace, traced, unclearAnswer } from '../http-trace.ts';
import type { Fields } from '../json-fields.ts';
import { CALLBACK_RETRIES, readTwilioStatus } from './callbacks.ts';
import { type TwilioAccount, twilioClient } from './client.ts';
import { classifyTwilioRefusal } from './errors.ts';

export interface MessagingAccount extends TwilioAccount {
  /** The base URL for callbacks; null if Twilio cannot reach us, so that it must be polled. */
  readonly publicUrl: string | null;
}

/** A channel of Twilio's Messages API. */
interface TwilioChannel {
  readonly endpointsOf: (message: OutgoingChat) => Endpoints;
  /** Returns the parameters of the content, or an outcome if the message cannot be sent. */
  readonly payloadOf: (message: OutgoingChat) => Payload | Promise<Payload | ChatOutcome>;
  readonly refusal: (message: OutgoingChat) => string | undefined;
  /** Compares a message with the body of one at Twilio. */
  readonly matchBody: (message: OutgoingChat, body: string) => Match;
}

export type Endpoints = { readonly to: string } & (
  { readonly from: string } | { readonly messagingServiceSid: string }
);

export interface Payload {
  readonly body?: string;
  readonly mediaUrl?: string[];
  readonly contentSid?: string;
  readonly contentVariables?: string;
  readonly smartEncoded?: boolean;
}

export type Match = 'same' | 'similar' | 'unknown' | 'other';

/** The latest messages between two numbers among which a lookup searches: one page of the list. */
const MAX_LISTED_MESSAGES = 200;

/** Sends messages of one channel through Twilio's API by its SDK. Throws if `accountSid` is malformed. */
export function twilioMessages(account: MessagingAccount, channel: TwilioChannel): ChatProvider {
  const client = twilioClient(account);
  const { publicUrl } = account;
  const { endpointsOf, payloadOf, refusal, matchBody } = channel;

  return {
    name: 'twilio',
    refusal,
    async send(message, expired) {
      const payload = await payloadOf(message);
      if ('kind' in payload) return payload;
      const tooLate = expired?.();
      if (tooLate) return tooLate;
      const statusCallback =
        publicUrl === null ? {} : { statusCallback: `${callbackUrl(publicUrl, message.id)}${CALLBACK_RETRIES}` };
      const { trace, result } = await traced(() =>
        client.messages.create({ ...endpointsOf(message), ...payload, ...statusCallback }),
      );
      if (result.status === 'rejected') return classifyFailure(result.reason, trace);
      const sid = (result.value as { sid?: unknown }).sid;
      return typeof sid === 'string' && sid !== '' ? { kind: 'sent', messageId: sid } : unclearAnswer('Twilio');
    },
    async find(message, created, isTaken) {
      // Compares creation times, in whole seconds: a message that is queued at Twilio has no send time.
      const fromMs = Math.floor(created.fromMs / 1_000) * 1_000;
      const isInPeriod = (createdMs: number) => createdMs >= fromMs && createdMs <= created.untilMs;
      const { to, ...sender } = endpointsOf(message);
      const filter = 'from' in sender ? { to, from: sender.from } : { to };
      const listed = await client.messages.list({
        ...filter,
        pageSize: MAX_LISTED_MESSAGES,
        limit: MAX_LISTED_MESSAGES,
      });
      const candidates = listed
        .filter(({ direction, dateCreated }) => direction.startsWith('outbound') && isInPeriod(dateCreated.getTime()))
        .filter((one) => 'from' in sender || one.messagingServiceSid === sender.messagingServiceSid)
        .reverse();
      // The SDK's type lacks null, which Twilio may return for a message without text.
      const compared = candidates.map(({ sid, body }: { sid: string; body: string | null }) => {
        const text = normalizeText(body ?? '');
        return { sid, text, match: matchBody(message, text) };
      });
      for (const quality of ['same', 'similar', 'unknown'] as const) {
        for (const { sid, text } of compared.filter(({ match }) => match === quality)) {
          // Messages with different files can have one text, and the list does not contain the links of files.
          const alsoFits = (other: OutgoingChat) =>
            matchBody(other, text) === 'same' && (quality !== 'same' || linkOf(other) !== linkOf(message));
          if (!(await isTaken?.(sid, alsoFits))) return sid;
        }
      }
      return undefined;
    },
    async report(message, providerMessageId): Promise<ChatReport | undefined> {
      const { sid, status, errorCode, errorMessage } = await client.messages(providerMessageId).fetch();
      return readTwilioStatus({ sid, status, errorCode, errorMessage }, message.id);
    },
  };
}

/** Returns the URL to which Twilio posts the status of a message, as its signature covers it. */
export function callbackUrl(publicUrl: string, messageId: string): string {
  return `${publicUrl.replace(/\/$/, '')}/callbacks/twilio?m=${messageId}`;
}

/** Returns the link of a message's file; undefined if it has none. */
export function linkOf({ content: { image, document } }: OutgoingChat): string | undefined {
  return (image ?? document)?.link;
}

/** Removes differences that forms and JSON may add to a text. */
export function normalizeText(text: string): string {
  return text.replaceAll('\r\n', '\n').trim();
}

function classifyFailure(error: unknown, trace: Trace): ChatOutcome {
  if (trace.failure) return classifyUnanswered('Twilio', trace);
  const refusal = classifyError(error, trace.retryAfterMs);
  if (refusal) return refusal;
  return error instanceof SyntaxError ? unclearAnswer('Twilio') : classifyUnanswered('Twilio', {});
}

/** Classifies an error of the SDK's; undefined if it is no unsuccessful response, which has a status. */
export function classifyError(error: unknown, afterMs?: number): ChatOutcome | undefined {
  const { status, code, message } = error as Fields;
  if (typeof status !== 'number') return undefined;
  return classifyTwilioRefusal({
    status,
    code: Number.isSafeInteger(code) ? (code as number) : undefined,
    message: Number.isSafeInteger(code) && typeof message === 'string' && message !== '' ? message : undefined,
    afterMs,
  });
}
