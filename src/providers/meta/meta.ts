import { isUserId } from '../../domain/chat/recipient.ts';
import { captionOf, type ChatContent, type OutgoingChat } from '../../domain/chat/chat.ts';
import type { ChatOutcome, ChatProvider } from '../chat-provider.ts';
import { captionProblem, lengthProblem } from '../chat-refusals.ts';
import { classifyUnanswered, traced, tracedFetch, unclearAnswer } from '../http-trace.ts';
import { type Fields, listOf, parseObject } from '../json-fields.ts';
import { classifyMetaRefusal, readError } from './errors.ts';

export interface MetaSettings {
  readonly phoneNumberId: string;
  readonly accessToken: string;
  readonly baseUrl: string;
  /** Deadline of a call; by default 30, and 10 for the verification of a number. */
  readonly timeoutSeconds?: number;
}

export const GRAPH_VERSION = 'v25.0';
const DEFAULT_TIMEOUT_SECONDS = 30;
const MAX_TEXT_LENGTH = 4_096;

/**
 * Sends chat-app messages from one number through Meta's WhatsApp Cloud API
 * (https://developers.facebook.com/docs/whatsapp/cloud-api/reference/messages). It has no endpoint to look up messages: only its
 * callbacks report them, by our id.
 */
export function metaProvider(settings: MetaSettings): ChatProvider {
  const url = `${phoneNumberUrl(settings)}/messages`;

  return {
    name: 'meta',
    refusal,
    async send(message) {
      const { trace, result } = await traced(() => request(settings, url, DEFAULT_TIMEOUT_SECONDS, toBody(message)));
      if (result.status === 'rejected') return classifyUnanswered('Meta', trace);
      return classifyAnswer(result.value, trace.retryAfterMs);
    },
  };
}

interface Answer {
  readonly status: number;
  /** Undefined if the answer is not a JSON object. */
  readonly body: Fields | undefined;
}

/** @param defaultTimeoutSeconds unless the settings have a timeout @param body undefined for a GET */
export async function request(
  { accessToken, timeoutSeconds }: MetaSettings,
  url: string,
  defaultTimeoutSeconds: number,
  body?: object,
): Promise<Answer> {
  const response = await tracedFetch(url, {
    headers: { 'content-type': 'application/json', authorization: `Bearer ${accessToken}` },
    signal: AbortSignal.timeout((timeoutSeconds ?? defaultTimeoutSeconds) * 1_000),
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  });
  return { status: response.status, body: parseObject(await response.text()) };
}

/** Returns the URL of a number in Meta's API. */
export function phoneNumberUrl({ baseUrl, phoneNumberId }: Pick<MetaSettings, 'baseUrl' | 'phoneNumberId'>): string {
  return `${baseUrl.replace(/\/$/, '')}/${GRAPH_VERSION}/${encodeURIComponent(phoneNumberId)}`;
}

function refusal({ type, content }: OutgoingChat): string | undefined {
  if (type === 'template') return undefined;
  return type === 'text'
    ? lengthProblem('WhatsApp', 'text', content.text, MAX_TEXT_LENGTH)
    : captionProblem(captionOf(content));
}

function toBody(message: OutgoingChat): object {
  const { id, to, type, content } = message;
  return {
    messaging_product: 'whatsapp',
    recipient_type: 'individual',
    // Meta drops a message whose `to` is a user id without an error.
    ...(isUserId(to) ? { recipient: to } : { to }),
    type,
    [type]: payloadOf(type, content),
    biz_opaque_callback_data: id,
  };
}

function payloadOf(type: OutgoingChat['type'], content: ChatContent): object | null {
  const { text, preview_url, template, image, document } = content;
  const caption = captionOf(content);
  const captioned = caption === null ? {} : { caption };
  switch (type) {
    case 'text':
      return { preview_url, body: text };
    case 'image':
      return image && { link: image.link, ...captioned };
    case 'document':
      return (
        document && {
          link: document.link,
          ...captioned,
          ...(document.filename && { filename: document.filename }),
        }
      );
    case 'template':
      return (
        template && {
          name: template.name,
          language: typeof template.language === 'string' ? { code: template.language } : template.language,
          ...(template.components != null && { components: template.components }),
        }
      );
  }
}

/** Without a message id the outcome is unknown. */
function classifyAnswer({ status, body: answer = {} }: Answer, afterMs: number | undefined): ChatOutcome {
  if (status >= 300 || answer['error']) return classifyMetaRefusal(status, readError(answer['error']), afterMs);
  const id = listOf(answer['messages'])[0]?.['id'];
  return typeof id === 'string' && id !== '' ? { kind: 'sent', messageId: id } : unclearAnswer('Meta');
}
