import { Type } from 'typebox';
import { CHAT_STATUSES, CHAT_TYPES, type ChatTemplate } from '../../domain/chat/chat.ts';
import {
  CAPTION_LENGTH,
  CHAT_FILENAME_LENGTH,
  CHAT_TEXT_LENGTH,
  LANGUAGE_LENGTH,
  LINK_LENGTH,
  TEMPLATE_NAME_LENGTH,
} from '../../domain/limits.ts';
import { enumOf, nullable, objectOf, optional, optionalEnum, ruledObject, timelineEntry, Timestamp } from './common.ts';
import { Tag } from './emails.ts';
import { messageFields, messageFilters } from './messages.ts';

const PHONE = '+14165550123';
const USER_ID = 'US.13491208655302741918';
const LINK = 'https://example.com/receipt.pdf';

const optionalText = (rule: string, maxLength: number, description: string, example: string) =>
  optional('string', { minLength: 1, maxLength, 'x-rule': rule, description, examples: [example] });

const link = {
  type: 'string',
  minLength: 1,
  maxLength: LINK_LENGTH,
  description: 'A public https URL; the provider fetches it',
  examples: [LINK],
};
const caption = optionalText('body', CAPTION_LENGTH, 'The caption; `text` by default', 'Your receipt');
const language = { type: 'string', minLength: 1, maxLength: LANGUAGE_LENGTH, 'x-rule': 'one-line' };

/** Creates an object field that one message type requires. */
function optionalObject<T>(properties: Record<string, unknown>, required: string[], description: string, more = {}) {
  return optional<T>('object', { properties, required, additionalProperties: false, description, ...more });
}

const templateField = (description: string) =>
  optionalObject<ChatTemplate>(
    {
      name: { type: 'string', minLength: 1, maxLength: TEMPLATE_NAME_LENGTH, 'x-rule': 'one-line' },
      language: {
        ...language,
        type: ['string', 'object'],
        properties: { code: language },
        required: ['code'],
        additionalProperties: false,
        description: 'The language code, as a string or as {code}',
        examples: ['en_US', { code: 'en_US' }],
      },
      components: { description: 'The values of its variables; passed on unchanged' },
    },
    ['name', 'language'],
    description,
    { 'x-rule': 'template' },
  );

export const SendChatBody = ruledObject('chat-content', 'SendChatMessageRequest', 'One chat-app message', {
  from: optional('string', {
    'x-rule': 'phone',
    description: 'The number from which it is sent; required if several are connected',
    examples: ['+12025550142'],
  }),
  to: Type.String({
    'x-rule': 'chat-recipient',
    description: "The recipient: a number in international form, or WhatsApp's business-scoped id of a user",
    examples: [PHONE, '+1 (416) 555-0123', USER_ID],
  }),
  type: optionalEnum(
    CHAT_TYPES,
    'ChatMessageType',
    '`text` by default; any other type requires the object of the same name',
    'text',
  ),
  text: optionalText('body', CHAT_TEXT_LENGTH, 'The message, or the caption of a file without one', 'On its way!'),
  preview_url: optional<boolean>('boolean', {
    description: 'Default false: whether the first link of a text is shown with a preview',
  }),
  template: templateField('A template that WhatsApp has approved'),
  fallback_template: templateField(
    'A template that is sent instead if the recipient has not written for 24 hours; not when type is template',
  ),
  image: optionalObject<{ link: string; caption?: string | null }>({ link, caption }, ['link'], 'An image'),
  document: optionalObject<{ link: string; caption?: string | null; filename?: string | null }>(
    {
      link,
      caption,
      filename: optionalText('one-line', CHAT_FILENAME_LENGTH, 'The file name that the recipient sees', 'receipt.pdf'),
    },
    ['link'],
    'A file',
  ),
  ...messageFields,
});

export const InboundParams = Type.Object({ id: Type.String({ examples: ['in_01kajce1x8m4n6p0r2t5v7w9yz'] }) });

export const ChatParams = Type.Object({ id: Type.String({ examples: ['wa_01kajce1x8m4n6p0r2t5v7w9yz'] }) });

const head = {
  id: Type.String({ examples: ['wa_01kajce1x8m4n6p0r2t5v7w9yz'] }),
  status: enumOf(CHAT_STATUSES, 'ChatMessageStatus'),
  type: enumOf(CHAT_TYPES, 'ChatMessageType'),
  from: Type.String({ description: 'E.164', examples: ['+12025550142'] }),
  country: Type.String({ description: 'The country of the recipient, ISO 3166-1 alpha-2', examples: ['CA'] }),
  created_at: Timestamp,
};

const optionalScheduledAt = Type.Optional({ ...Timestamp, description: 'Only if the request has it' });

export const AcceptedChat = objectOf('AcceptedChatMessage', {
  ...head,
  status: Type.Enum(['queued', 'scheduled']),
  scheduled_at: optionalScheduledAt,
});

const summary = {
  ...head,
  to: Type.String({ description: 'E.164, or the id of a user', examples: [PHONE] }),
  error: nullable(Type.String(), 'Why it failed'),
  error_code: nullable(Type.String(), "The provider's error code, or `window_closed`"),
  tags: Type.Optional(Type.Array(Tag, { description: 'Only if the request has any' })),
  scheduled_at: optionalScheduledAt,
  last_event_at: Timestamp,
};

export const ChatSummary = objectOf('ChatMessageSummary', summary);

const file = { link: Type.String(), caption: Type.Optional(nullable(Type.String())) };

const template = Type.Object({
  name: Type.String(),
  language: Type.Union([Type.String(), Type.Object({ code: Type.String() })]),
  components: Type.Optional(Type.Unknown()),
});

export const ChatBody = Type.Object(
  {
    ...summary,
    text: nullable(Type.String(), 'Null without one; all content is null once it is erased'),
    preview_url: Type.Boolean(),
    template: nullable(template),
    fallback_template: Type.Optional(template),
    fallback_at: Type.Optional({
      ...Timestamp,
      description: 'When `fallback_template` replaced it; absent if it did not',
    }),
    image: nullable(Type.Object(file)),
    document: nullable(Type.Object({ ...file, filename: Type.Optional(nullable(Type.String())) })),
    events: Type.Array(timelineEntry('chatapp', 'ChatMessage'), { description: 'Oldest first' }),
  },
  { title: 'ChatMessage' },
);

export const ChatFilters = messageFilters(
  enumOf(CHAT_STATUSES, 'ChatMessageStatus', 'Only messages with this status', 'failed'),
  {
    'x-rule': 'chat-recipient-in-query',
    description: 'Only messages to this number, in international form, or to the user with this id',
    examples: [PHONE],
  },
);
