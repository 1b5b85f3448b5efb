import { captionOf, type OutgoingChat, type TwilioContent } from '../../domain/chat/chat.ts';
import type { ChatOutcome, ChatProvider } from '../chat-provider.ts';
import { captionProblem, lengthProblem } from '../chat-refusals.ts';
import {
  type Endpoints,
  type Match,
  type MessagingAccount,
  type Payload,
  classifyError,
  linkOf,
  normalizeText,
  twilioMessages,
} from './messages.ts';
import { bodyValues, componentsProblem, fillContent, languageOf } from './templates.ts';

export interface TwilioSettings extends MessagingAccount {
  /** The content of a template of this number; undefined if there is none. Rejects if that is temporarily unknown. */
  readonly contentOf: (name: string, language: string) => Promise<TwilioContent | undefined>;
}

/** https://www.twilio.com/docs/messaging/api/message-resource */
const MAX_TEXT_LENGTH = 1_600;

/** Sends chat-app messages from one number through Twilio. Throws if `accountSid` is malformed. */
export function twilioProvider({ contentOf, ...account }: TwilioSettings): ChatProvider {
  async function payloadOf(message: OutgoingChat): Promise<Payload | ChatOutcome> {
    const { text, template } = message.content;
    const link = linkOf(message);
    const caption = captionOf(message.content);
    if (link !== undefined) return { mediaUrl: [link], ...(caption !== null && { body: caption }) };
    if (!template) return { body: text ?? '' };
    const language = languageOf(template);
    const content = await contentOf(template.name, language).catch(classifyLookup);
    if (content && 'kind' in content) return content;
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

  return twilioMessages(account, { endpointsOf, payloadOf, refusal, matchBody });
}

/** A look-up sends nothing: it can be repeated unless Twilio refuses our account. */
function classifyLookup(error: unknown): ChatOutcome {
  const outcome = classifyError(error);
  return outcome?.kind === 'account' ? outcome : { kind: 'busy', detail: 'The template could not be looked up.' };
}

function endpointsOf({ from, to }: OutgoingChat): Endpoints {
  return { from: `whatsapp:${from}`, to: `whatsapp:${to}` };
}

function refusal({ type, content }: OutgoingChat): string | undefined {
  const { text, preview_url: preview, document, template } = content;
  const caption = captionOf(content);
  switch (type) {
    case 'text':
      if (preview) return 'Twilio accepts no preview_url: the chat app itself decides whether it shows a link.';
      return lengthProblem('Twilio', 'text', text, MAX_TEXT_LENGTH);
    case 'image':
      return captionProblem(caption);
    case 'document':
      if (caption !== null) return 'Twilio accepts documents without a caption.';
      return document?.filename ? 'Twilio accepts documents without a file name.' : undefined;
    case 'template':
      return template ? componentsProblem(template) : undefined;
  }
}

/** Compares the body of a message at Twilio. Of a template's text only the values are known; it may be listed without it. */
function matchBody({ content }: OutgoingChat, body: string): Match {
  const { template, text, image, document } = content;
  if (!template)
    return body === normalizeText((image || document ? captionOf(content) : text) ?? '') ? 'same' : 'other';
  if (body === '') return 'unknown';
  return bodyValues(template).every((value) => body.includes(normalizeText(value))) ? 'similar' : 'other';
}
