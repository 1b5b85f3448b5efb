import type { Static } from 'typebox';
import type { ChatTemplate } from '../../domain/chat/chat.ts';
import { requireFound, ServiceError } from '../../domain/errors.ts';
import { CHAT_BODY_BYTES } from '../../domain/limits.ts';
import { parseRecipientQuery } from '../../domain/chat/recipient.ts';
import { type ChatRequest, sendChat } from '../../intake/chatapp.ts';
import { findChat, listChats } from '../../store/chat/messages.ts';
import { listRoute } from '../list-route.ts';
import { route } from '../route.ts';
import { AcceptedChat, ChatBody, ChatFilters, ChatParams, ChatSummary, SendChatBody } from '../schemas/chatapp.ts';
import { IdempotencyHeader } from '../schemas/common.ts';

const tags = ['Chat-app messages'];

export const send = route(
  {
    tags,
    operationId: 'sendChatMessage',
    summary: 'Send a chat-app message',
    description:
      'Accepts one WhatsApp message for delivery: a text, a template, an image or a document. The number it comes from ' +
      'must be connected. A number at Twilio carries less than one at Meta: a message that exceeds it ends as `failed`, ' +
      'with an `error` that names the limit.',
    headers: IdempotencyHeader,
    body: SendChatBody,
    response: { 202: AcceptedChat },
  },
  (deps, { orgId, body, idempotency }) => sendChat(deps, orgId, toRequest(body), idempotency),
  { bodyLimit: CHAT_BODY_BYTES },
);

/** Fills in the defaults of a valid body and leaves other values unchanged. */
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
    },
  };
}

/** Null means no components, but a provider would treat it as a value. */
function templateOf({ components, ...template }: ChatTemplate): ChatTemplate {
  return components == null ? template : { ...template, components };
}

export const get = route(
  {
    tags,
    operationId: 'getChatMessage',
    summary: 'Get a chat-app message',
    description: 'One message as it was given, with its status and timeline.',
    params: ChatParams,
    response: { 200: ChatBody },
  },
  async ({ pool }, { orgId, params }) => requireFound(await findChat(pool, orgId, params.id), 'chat-app message'),
);

export const list = listRoute(
  'messages',
  ChatSummary,
  {
    tags,
    operationId: 'listChatMessages',
    summary: 'List chat-app messages',
    description:
      'Messages that have all that the filters ask for, newest first. Follow `next_cursor` until it is null.',
    filters: ChatFilters,
    filtersOf: ({ query: { status = null, to } }) => ({ status, to: to === undefined ? null : recipientOf(to) }),
  },
  ({ pool }, { orgId }, after, limit, filters) => listChats(pool, orgId, filters, after, limit),
);

/** Converts a number in a query to E.164, as stored. */
function recipientOf(text: string): string {
  const recipient = parseRecipientQuery(text);
  if (typeof recipient === 'string') throw new ServiceError('validation_error', recipient, 'to');
  return recipient.to;
}
