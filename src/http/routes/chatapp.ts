import type { Static } from 'typebox';
import type { ChatTemplate } from '../../domain/chat/chat.ts';
import { CHAT_BODY_BYTES } from '../../domain/limits.ts';
import { type ChatRequest, sendChat } from '../../intake/chatapp.ts';
import type { MessageSummary } from '../../store/messages/messages.ts';
import { changerOf } from '../plugins/auth.ts';
import { route } from '../route.ts';
import { AcceptedChat, ChatBody, ChatFilters, ChatParams, ChatSummary, SendChatBody } from '../schemas/chatapp.ts';
import { IdempotencyHeader } from '../schemas/common.ts';
import { messageRoutes } from './messages.ts';

export const send = route('sendChatMessage', 'Send a chat-app message', {
  description:
    'Accepts one WhatsApp message for delivery: a text, a template, an image or a document. The number it comes from ' +
    'must be connected. A number at Twilio accepts less than one at Meta: a message that exceeds it ends as `failed`, ' +
    'with an `error` that names the limit.',
  headers: IdempotencyHeader,
  body: SendChatBody,
  response: { 202: AcceptedChat },
  handler: (deps, request) => sendChat(deps, changerOf(request), toRequest(request.body), request.idempotency),
  options: { bodyLimit: CHAT_BODY_BYTES },
});

/** Sets the defaults of a valid body and leaves other values unchanged. */
function toRequest(body: Static<typeof SendChatBody>): ChatRequest {
  return {
    from: body.from ?? null,
    to: body.to,
    type: body.type ?? 'text',
    content: {
      text: body.text ?? null,
      preview_url: body.preview_url ?? false,
      template: body.template ? templateOf(body.template) : null,
      image: body.image ?? null,
      document: body.document ?? null,
      ...(body.fallback_template && { fallback_template: templateOf(body.fallback_template) }),
    },
    tags: body.tags ?? [],
    scheduled_at: body.scheduled_at ?? null,
  };
}

/** Removes null components, which a provider would treat as a value. */
function templateOf({ components, ...template }: ChatTemplate): ChatTemplate {
  return components == null ? template : { ...template, components };
}

export const { get, list, reschedule, cancel, eraseContent } = messageRoutes({
  channel: 'chatapp',
  operation: 'ChatMessage',
  one: 'a chat-app message',
  many: 'chat-app messages',
  params: ChatParams,
  body: ChatBody,
  summary: ChatSummary,
  filters: ChatFilters,
  present: withoutDefaults,
});

/**
 * Removes fields that messages in the API contract do not have: tags, time and fallback are shown only if the request had them.
 */
function withoutDefaults({ tags, ...message }: MessageSummary): MessageSummary {
  const optional: readonly string[] = ['scheduled_at', 'fallback_template', 'fallback_at'];
  const visible = Object.entries(message).filter(([name, value]) => value !== null || !optional.includes(name));
  return { ...Object.fromEntries(visible), ...(tags.length > 0 && { tags }) } as unknown as MessageSummary;
}
