import { Type } from 'typebox';
import {
  chatSeal,
  type ConnectDeps,
  connectOwnNumber,
  removeNumber,
  requireNumber,
} from '../../accounts/chat-numbers.ts';
import type { Limits } from '../../intake/emails.ts';
import { listNumbers } from '../../store/chat/numbers.ts';
import { callerOf } from '../plugins/auth.ts';
import { listRoute } from '../list-route.ts';
import { route } from '../route.ts';
import { ConnectNumberBody, NumberBody, NumberParams, NumbersQuery, NumberSummary } from '../schemas/chat-numbers.ts';
import { listOf } from '../schemas/lists.ts';
import type { SecretKeys } from '../../lib/secret-key.ts';

export interface NumberRoutesDeps extends Pick<ConnectDeps, 'pool' | 'verifyNumber'> {
  readonly limits: Limits;
  readonly secretKey: SecretKeys;
}

const tags = ['Chat-app numbers'];

export function connect({ pool, limits, secretKey, verifyNumber }: NumberRoutesDeps) {
  const seal = chatSeal(secretKey);
  return route(
    {
      tags,
      operationId: 'connectChatNumber',
      summary: 'Connect a number',
      description:
        'Chat-app messages can come from it from now on. The provider is asked whether the number belongs to the account ' +
        "of its token; numbers on the operator's account are connected by the operator. A number is connected to one " +
        'organization. Tokens are kept encrypted and never shown.',
      body: ConnectNumberBody,
      response: { 201: NumberBody },
    },
    async (request) => {
      const { number, provider, phone_number_id, account_sid, access_token, auth_token, templates } = request.body;
      return connectOwnNumber({ pool, seal, verifyNumber, limits: limits.organization }, callerOf(request).org_id, {
        number,
        provider,
        phone_number_id: phone_number_id ?? null,
        account_sid: account_sid ?? null,
        token: access_token ?? auth_token ?? null,
        templates: (templates ?? []).map((template) => ({ ...template, variables: template.variables ?? [] })),
      });
    },
  );
}

export function list({ pool, secretKey }: NumberRoutesDeps) {
  return listRoute(
    secretKey,
    'numbers',
    {
      tags,
      operationId: 'listChatNumbers',
      summary: 'List numbers',
      description: 'Connected numbers, newest first. Follow `next_cursor` until it is null.',
      querystring: NumbersQuery,
      response: { 200: listOf('numbers', NumberSummary) },
    },
    (request) => ({ find: (after, limit) => listNumbers(pool, callerOf(request).org_id, after, limit) }),
  );
}

export function get({ pool }: NumberRoutesDeps) {
  return route(
    {
      tags,
      operationId: 'getChatNumber',
      summary: 'Get a number',
      description: 'One connected number with its templates.',
      params: NumberParams,
      response: { 200: NumberBody },
    },
    (request) => requireNumber(pool, callerOf(request).org_id, request.params.id),
  );
}

export function remove({ pool }: NumberRoutesDeps) {
  return route(
    {
      tags,
      operationId: 'disconnectChatNumber',
      summary: 'Disconnect a number',
      description: 'Messages are no longer sent from this number. Accepted messages that were not sent yet fail.',
      params: NumberParams,
      response: { 204: Type.Null() },
    },
    async (request) => {
      await removeNumber(pool, callerOf(request).org_id, request.params.id);
    },
  );
}
