import { type Static, Type } from 'typebox';
import { CHAT_PROVIDERS } from '../../domain/chat/chat.ts';
import {
  LANGUAGE_LENGTH,
  TEMPLATE_NAME_LENGTH,
  TEMPLATE_VARIABLE_LENGTH,
  TEMPLATE_VARIABLES,
  TEMPLATES_PER_NUMBER,
} from '../../domain/limits.ts';
import { closedObject, enumOf, nullable, objectOf, optional, ruledObject, Timestamp } from './common.ts';

const ACCOUNT = `AC${'0'.repeat(32)}`;
const CONTENT = `HX${'0'.repeat(32)}`;

const template = closedObject('ChatTemplateMapping', null, {
  name: Type.String({ minLength: 1, maxLength: TEMPLATE_NAME_LENGTH, 'x-rule': 'one-line', examples: ['receipt'] }),
  language: Type.String({ minLength: 1, maxLength: LANGUAGE_LENGTH, 'x-rule': 'one-line', examples: ['en_US'] }),
  content_sid: Type.String({
    'x-rule': 'content-sid',
    description: 'The content of the template at Twilio',
    examples: [CONTENT],
  }),
  variables: optional<string[]>('array', {
    maxItems: TEMPLATE_VARIABLES,
    items: { type: 'string', minLength: 1, maxLength: TEMPLATE_VARIABLE_LENGTH, 'x-rule': 'one-line' },
    description: "The content's variables in the order of a message's parameters: header, body, buttons",
    examples: [['1', '2']],
  }),
});

export const ConnectNumberBody = ruledObject('chat-number', 'ConnectChatNumberRequest', 'A number', {
  number: Type.String({ 'x-rule': 'phone', description: 'In international form', examples: ['+12025550142'] }),
  provider: enumOf(CHAT_PROVIDERS, 'ChatProvider', 'The provider of its messages', 'twilio'),
  phone_number_id: optional('string', {
    'x-rule': 'phone-number-id',
    description: 'meta: its id of the number; required for meta',
    examples: ['106540352242922'],
  }),
  access_token: optional('string', {
    'x-rule': 'token',
    description: 'meta: a token of the account that owns the number; required for meta',
  }),
  account_sid: optional('string', {
    'x-rule': 'account-sid',
    description: 'twilio: the account that owns the number',
    examples: [ACCOUNT],
  }),
  auth_token: optional('string', {
    'x-rule': 'token',
    description: 'twilio: the token of that account; required for twilio',
  }),
  templates: optional<Static<typeof template>[]>('array', {
    maxItems: TEMPLATES_PER_NUMBER,
    'x-rule': 'unique-templates',
    items: template,
    description: 'twilio: the content of each template',
  }),
});

export const NumberParams = Type.Object({ id: Type.String({ examples: ['num_01kajce5q2w4e6r8t0y1u3i5op'] }) });

const number = {
  id: Type.String(),
  number: Type.String({ description: 'E.164' }),
  provider: enumOf(CHAT_PROVIDERS, 'ChatProvider'),
  phone_number_id: nullable(Type.String(), 'meta: its id of the number'),
  account_sid: nullable(Type.String(), "twilio: the number's own account; null for the operator's account"),
  own_token: Type.Boolean({ description: 'Whether it has a token of its own, which is never shown' }),
  created_at: Timestamp,
};

export const NumberSummary = objectOf('ChatNumberSummary', number);

export const NumberBody = objectOf('ChatNumber', {
  ...number,
  templates: Type.Array(
    Type.Object({
      name: Type.String(),
      language: Type.String(),
      content_sid: Type.String(),
      variables: Type.Array(Type.String()),
    }),
    { description: 'twilio: the content of each template' },
  ),
});
