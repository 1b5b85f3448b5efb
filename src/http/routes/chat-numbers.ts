import { Type } from 'typebox';
import { connectOwnNumber, removeNumber, requireNumber } from '../../accounts/chat-numbers.ts';
import { listNumbers } from '../../store/chat/numbers.ts';
import { listRoute } from '../list-route.ts';
import { route } from '../route.ts';
import { ConnectNumberBody, NumberBody, NumberParams, NumberSummary } from '../schemas/chat-numbers.ts';

export const connect = route(
  {
    operationId: 'connectChatNumber',
    summary: 'Connect a number',
    description:
      'Chat-app messages can come from it from now on. The provider is asked whether the number belongs to the account ' +
      "of its token; numbers on the operator's account are connected by the operator. A number is connected to one " +
      'organization. Tokens are kept encrypted and never shown.',
    body: ConnectNumberBody,
    response: { 201: NumberBody },
  },
  ({ numbers }, { orgId, body }) =>
    connectOwnNumber(numbers, orgId, {
      number: body.number,
      provider: body.provider,
      phone_number_id: body.phone_number_id ?? null,
      account_sid: body.account_sid ?? null,
      token: body.access_token ?? body.auth_token ?? null,
      templates: (body.templates ?? []).map((template) => ({ ...template, variables: template.variables ?? [] })),
    }),
);

export const list = listRoute(
  'numbers',
  NumberSummary,
  {
    operationId: 'listChatNumbers',
    summary: 'List numbers',
    description: 'Connected numbers, newest first. Follow `next_cursor` until it is null.',
  },
  ({ pool }, { orgId }, after, limit) => listNumbers(pool, orgId, after, limit),
);

export const get = route(
  {
    operationId: 'getChatNumber',
    summary: 'Get a number',
    description: 'One connected number with its templates.',
    params: NumberParams,
    response: { 200: NumberBody },
  },
  ({ pool }, { orgId, params }) => requireNumber(pool, orgId, params.id),
);

export const remove = route(
  {
    operationId: 'disconnectChatNumber',
    summary: 'Disconnect a number',
    description: 'Messages are no longer sent from this number. Accepted messages that were not sent yet fail.',
    params: NumberParams,
    response: { 204: Type.Null() },
  },
  ({ pool }, { orgId, params }) => removeNumber(pool, orgId, params.id),
);
