import { captionOf, type OutgoingChat } from '../../domain/chat/chat.ts';
import { characters } from '../../lib/text.ts';
import type { ChatOutcome, ChatProvider, ChatReport } from '../chat-provider.ts';
import { type Trace, traced } from '../http-trace.ts';
import { readTwilioStatus } from './callbacks.ts';
import { type TwilioAccount, twilioClient } from './client.ts';
import { classifyRefusal } from './errors.ts';
import { bodyValues, componentsProblem, fillContent, languageOf, type TwilioContent } from './templates.ts';

export interface TwilioSettings extends TwilioAccount {
  /** Where Twilio reaches us, without a path; null when it cannot, so that it has to be asked. */
  readonly publicUrl: string | null;
  /** The content of a template of this number; undefined if there is none. Rejects if that is temporarily unknown. */
  readonly contentOf: (name: string, language: string) => Promise<TwilioContent | undefined>;
}

/** https://www.twilio.com/docs/messaging/api/message-resource */
const MAX_TEXT = 1_600;
/** WhatsApp's own. */
const MAX_CAPTION = 1_024;
/** Messages between two numbers that are looked at to find one: a page of the list, newest first. */
const LOOKED_AT = 200;
/** Twilio retries a callback five times after any failure, all within 15 seconds. */
const TRIES = '#rc=5&rp=all';

/** Carries chat-app messages from one number through Twilio's API by its SDK. Throws when `accountSid` is none. */
export function twilioProvider(settings: TwilioSettings): ChatProvider {
  const client = twilioClient(settings);
  const { publicUrl, contentOf } = settings;

  async function payloadOf(message: OutgoingChat): Promise<Payload | ChatOutcome> {
    const { text, image, document, template } = message.content;
    const link = (image ?? document)?.link;
    const caption = captionOf(message.content);
    if (link !== undefined) return { mediaUrl: [link], ...(caption !== null && { body: caption }) };
    if (!template) return { body: text ?? '' };
    const language = languageOf(template);
    const content = await contentOf(template.name, language).catch(() => null);
    if (content === null) return { kind: 'busy', detail: 'The template could not be looked up.' };
    if (!content) {
      const detail = `The number has no content at Twilio for the template ${template.name} in ${language}.`;
      return { kind: 'refused', detail };
    }
    const filled = fillContent(template, content);
    if ('problem' in filled) return { kind: 'refused', detail: filled.problem };
    const { contentSid } = content;
    const isFilled = content.variables.length > 0;
    return { contentSid, ...(isFilled && { contentVariables: JSON.stringify(filled.values) }) };
  }

  return {
    name: 'twilio',
    refusal,
    async send(message) {
      const payload = await payloadOf(message);
      if ('kind' in payload) return payload;
      const ends = endsOf(message);
      const statusCallback =
        publicUrl === null ? {} : { statusCallback: `${callbackUrl(publicUrl, message.id)}${TRIES}` };
      const { trace, result } = await traced(() => client.messages.create({ ...ends, ...payload, ...statusCallback }));
      if (result.status === 'rejected') return classifyFailure(result.reason, trace);
      const sid = (result.value as { sid?: unknown }).sid;
      return typeof sid === 'string' && sid !== '' ? { kind: 'sent', messageId: sid } : UNTOLD;
    },
    async find(message, since, isAnothers) {
      // Not by the time it was sent: one that still waits at Twilio has none. Times there are whole seconds.
      const from = Math.floor(since / 1_000) * 1_000;
      const listed = await client.messages.list({ ...endsOf(message), pageSize: LOOKED_AT, limit: LOOKED_AT });
      const later = listed
        .filter(({ direction, dateCreated }) => direction.startsWith('outbound') && dateCreated.getTime() >= from)
        .reverse();
      // Those with the same text first; a template may be listed without its text.
      const alike = later.filter(({ body }) => isSaidBy(message, body));
      const silent = message.content.template ? later.filter(({ body }) => !body) : [];
      for (const { sid } of [...alike, ...silent]) if (!(await isAnothers?.(sid))) return sid;
      return undefined;
    },
    async report(message, providerMessageId): Promise<ChatReport | undefined> {
      const { sid, status, errorCode, errorMessage } = await client.messages(providerMessageId).fetch();
      return readTwilioStatus({ sid, status, errorCode, errorMessage }, message.id);
    },
  };
}

/** Where Twilio posts what becomes of a message, as its signature covers it. */
export function callbackUrl(publicUrl: string, messageId: string): string {
  return `${publicUrl.replace(/\/$/, '')}/callbacks/twilio?m=${messageId}`;
}

/** The content of a request, without from and to. */
interface Payload {
  readonly body?: string;
  readonly mediaUrl?: string[];
  readonly contentSid?: string;
  readonly contentVariables?: string;
}

function endsOf({ from, to }: OutgoingChat) {
  return { from: `whatsapp:${from}`, to: `whatsapp:${to}` };
}

function refusal({ type, content }: OutgoingChat): string | undefined {
  const { text, preview_url: preview, document, template } = content;
  const caption = captionOf(content);
  switch (type) {
    case 'text': {
      if (preview) return 'Twilio carries no preview_url: the chat app itself decides whether it shows a link.';
      const length = characters(text ?? '');
      return length > MAX_TEXT ? `Twilio carries at most ${MAX_TEXT} characters of text, not ${length}.` : undefined;
    }
    case 'image': {
      const length = characters(caption ?? '');
      return length > MAX_CAPTION
        ? `WhatsApp carries at most ${MAX_CAPTION} characters of a caption, not ${length}.`
        : undefined;
    }
    case 'document':
      if (caption !== null) return 'Twilio carries documents without a caption.';
      return document?.filename ? 'Twilio carries documents without a file name.' : undefined;
    case 'template':
      return template ? componentsProblem(template) : undefined;
  }
}

/** Whether a message at Twilio with this body may be this one. Of a template's text we know only what fills it. */
function isSaidBy({ content }: OutgoingChat, body: string | null): boolean {
  const { template, text, image, document } = content;
  const given = plain(body ?? '');
  if (template) return given !== '' && bodyValues(template).every((value) => given.includes(plain(value)));
  return given === plain((image || document ? captionOf(content) : text) ?? '');
}

/** A text without what a way through forms and JSON may change. */
function plain(text: string): string {
  return text.replaceAll('\r\n', '\n').trim();
}

const UNTOLD: ChatOutcome = {
  kind: 'unknown',
  detail: 'Twilio answered without saying whether it took the message.',
};

/** An error of the SDK's: an answer of 400 and above has a status. */
function classifyFailure(error: unknown, trace: Trace): ChatOutcome {
  if (trace.failure) {
    const { reached, reason } = trace.failure;
    return reached === 'never left'
      ? { kind: 'busy', detail: `Twilio could not be reached: ${reason}.` }
      : { kind: 'unknown', detail: `Twilio did not answer: ${reason}.` };
  }
  const { status, code, message } = error as { status?: unknown; code?: unknown; message?: unknown };
  if (typeof status !== 'number') return error instanceof SyntaxError ? UNTOLD : LOST;
  return classifyRefusal({
    status,
    code: Number.isSafeInteger(code) ? (code as number) : undefined,
    message: Number.isSafeInteger(code) && typeof message === 'string' && message !== '' ? message : undefined,
    after: trace.retryAfter,
  });
}

const LOST: ChatOutcome = { kind: 'unknown', detail: 'Twilio did not answer: connection lost.' };
