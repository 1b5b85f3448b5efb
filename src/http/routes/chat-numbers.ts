import { Type } from 'typebox';
import { connectOwnNumber, removeNumber, requireNumber } from '../../accounts/chat-numbers.ts';
import { listNumbers } from '../../store/chat/numbers.ts';
import { listRoute } from '../list-route.ts';
import { route } from '../route.ts';
import { ConnectNumberBody, NumberBody, NumberParams, NumberSummary } from '../schemas/chat-numbers.ts';

export const connect = route('connectChatNumber', 'Connect a number', {
  description:
    'Chat-app messages can be sent from it from now on. The provider is asked whether the number belongs to the account ' +
    "of its token; numbers on the operator's account are connected by the operator. A number is connected to one " +
    'organization. Tokens are kept encrypted and never shown.',
  body: ConnectNumberBody,
  response: { 201: NumberBody },
  handler: ({ numbers }, { orgId, body }) =>
    connectOwnNumber(numbers, orgId, {
      number: body.number,
      provider: body.provider,
      phone_number_id: body.phone_number_id ?? null,
      account_sid: body.account_sid ?? null,
      token: body.access_token ?? body.auth_token ?? null,
      templates: (body.templates ?? []).map((template) => ({ ...template, variables: template.variables ?? [] })),
    }),
});

export const list = listRoute('listChatNumbers', 'List numbers', {
  name: 'numbers',
  item: NumberSummary,
  description: 'Connected numbers, newest first. Follow `next_cursor` until it is null.',
  read: ({ pool }, { orgId }, after, limit) => listNumbers(pool, orgId, after, limit),
});

export const get = route('getChatNumber', 'Get a number', {
  description: 'One connected number with its templates.',
  params: NumberParams,
  response: { 200: NumberBody },
  handler: ({ pool }, { orgId, params }) => requireNumber(pool, orgId, params.id),
});

export const remove = route('disconnectChatNumber', 'Disconnect a number', {
  description:
    'Messages are no longer sent from this number. Accepted messages from it fail when they are due, unless your organization ' +
    'connects the number again first.',
  params: NumberParams,
  response: { 204: Type.Null() },
  handler: ({ pool }, { orgId, params }) => removeNumber(pool, orgId, params.id),
});
