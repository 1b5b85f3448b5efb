import { isUserId } from '../../domain/chat/recipient.ts';
import { captionOf, type ChatContent, type OutgoingChat } from '../../domain/chat/chat.ts';
import { characters } from '../../lib/text.ts';
import type { ChatOutcome, ChatProvider } from '../chat-provider.ts';
import { traced, tracedFetch } from '../http-trace.ts';
import { classifyRefusal, readError } from './errors.ts';

export interface MetaSettings {
  /** What Meta calls the number. */
  readonly phoneNumberId: string;
  readonly accessToken: string;
  /** Where its API is, such as `https://graph.facebook.com`. */
  readonly baseUrl: string;
  /** Seconds that a call may take; 30 by default. */
  readonly timeout?: number;
}

export const GRAPH_VERSION = 'v25.0';
const TIMEOUT = 30;
const MAX_TEXT = 4_096;
const MAX_CAPTION = 1_024;

/**
 * Sends chat-app messages from one number through Meta's WhatsApp Cloud API
 * (https://developers.facebook.com/docs/whatsapp/cloud-api/reference/messages). It has no endpoint to look up messages: only its
 * callbacks report them, by our id.
 */
export function metaProvider(settings: MetaSettings): ChatProvider {
  const { accessToken, timeout = TIMEOUT } = settings;
  const url = `${phoneNumberUrl(settings)}/messages`;

  async function post(body: object): Promise<{ readonly status: number; readonly text: string }> {
    const answer = await tracedFetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${accessToken}` },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(timeout * 1_000),
    });
    return { status: answer.status, text: await answer.text() };
  }

  return {
    name: 'meta',
    refusal,
    async send(message) {
      const { trace, result } = await traced(() => post(toBody(message)));
      if (result.status === 'fulfilled')
        return classifyAnswer(result.value.status, result.value.text, trace.retryAfter);
      const { reached, reason } = trace.failure ?? { reached: 'may have arrived', reason: 'connection lost' };
      return reached === 'never left'
        ? { kind: 'busy', detail: `Meta could not be reached: ${reason}.` }
        : { kind: 'unknown', detail: `Meta did not answer: ${reason}.` };
    },
  };
}

/** Where Meta's API has what belongs to a number. */
export function phoneNumberUrl({ baseUrl, phoneNumberId }: Pick<MetaSettings, 'baseUrl' | 'phoneNumberId'>): string {
  return `${baseUrl.replace(/\/$/, '')}/${GRAPH_VERSION}/${encodeURIComponent(phoneNumberId)}`;
}

function refusal({ type, content }: OutgoingChat): string | undefined {
  const [text, limit, what] =
    type === 'text' ? [content.text, MAX_TEXT, 'text'] : [captionOf(content), MAX_CAPTION, 'a caption'];
  const length = type === 'template' ? 0 : characters(text ?? '');
  return length > limit ? `WhatsApp carries at most ${limit} characters of ${what}, not ${length}.` : undefined;
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
function classifyAnswer(status: number, text: string, after: number | undefined): ChatOutcome {
  const answer = parse(text) as { messages?: { id?: unknown }[]; error?: unknown } | null | undefined;
  if (status >= 300 || answer?.error) return classifyRefusal(status, readError(answer?.error), after);
  const id = Array.isArray(answer?.messages) ? answer.messages[0]?.id : undefined;
  return typeof id === 'string' && id !== ''
    ? { kind: 'sent', messageId: id }
    : { kind: 'unknown', detail: 'Meta answered without saying whether it took the message.' };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
