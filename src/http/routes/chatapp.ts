import type { Static } from 'typebox';
import type { ChatTemplate } from '../../domain/chat/chat.ts';
import { ServiceError } from '../../domain/errors.ts';
import { CHAT_BODY_BYTES } from '../../domain/limits.ts';
import { parseRecipientQuery } from '../../domain/chat/recipient.ts';
import { type ChatRequest, sendChat } from '../../intake/chatapp.ts';
import type { IntakeDeps } from '../../intake/emails.ts';
import { findChat, listChats } from '../../store/chat/messages.ts';
import type { Db } from '../../store/postgres/pool.ts';
import { callerOf } from '../plugins/auth.ts';
import { listRoute } from '../list-route.ts';
import { type Route, route } from '../route.ts';
import { AcceptedChat, ChatBody, ChatParams, ChatsQuery, ChatSummary, SendChatBody } from '../schemas/chatapp.ts';
import { IdempotencyHeader } from '../schemas/common.ts';
import { listOf } from '../schemas/lists.ts';
import type { SecretKeys } from '../../lib/secret-key.ts';

const tags = ['Chat-app messages'];

export function send(deps: Pick<IntakeDeps, 'pool' | 'wakeRelay'>): Route {
  const sending = route(
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
    (request) => sendChat(deps, callerOf(request).org_id, toRequest(request.body), request.idempotency),
  );
  return { ...sending, bodyLimit: CHAT_BODY_BYTES };
}

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

export function get({ pool }: { readonly pool: Db }): Route {
  return route(
    {
      tags,
      operationId: 'getChatMessage',
      summary: 'Get a chat-app message',
      description: 'One message as it was given, with its status and timeline.',
      params: ChatParams,
      response: { 200: ChatBody },
    },
    async (request) => {
      const message = await findChat(pool, callerOf(request).org_id, request.params.id);
      if (!message) throw new ServiceError('not_found', 'there is no chat-app message with this id');
      return message;
    },
  );
}

export function list({ pool, secretKey }: { readonly pool: Db; readonly secretKey: SecretKeys }): Route {
  return listRoute(
    secretKey,
    'messages',
    {
      tags,
      operationId: 'listChatMessages',
      summary: 'List chat-app messages',
      description:
        'Messages that have all that the filters ask for, newest first. Follow `next_cursor` until it is null.',
      querystring: ChatsQuery,
      response: { 200: listOf('messages', ChatSummary) },
    },
    (request) => {
      const { status = null, to } = request.query;
      const filters = { status, to: to === undefined ? null : recipientOf(to) };
      return { filters, find: (after, limit) => listChats(pool, callerOf(request).org_id, filters, after, limit) };
    },
  );
}

/** Converts a number in a query to E.164, as stored. */
function recipientOf(text: string): string {
  const recipient = parseRecipientQuery(text);
  if (typeof recipient === 'string') throw new ServiceError('validation_error', recipient, 'to');
  return recipient.to;
}
