import { Type } from 'typebox';
import type { Limits } from '../../intake/emails.ts';
import { issueKey, removeKey, requireKey } from '../../accounts/keys.ts';
import { withinLimit } from '../../accounts/organization-limits.ts';
import { listKeys } from '../../store/accounts/keys.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { callerOf } from '../plugins/auth.ts';
import { listRoute } from '../list-route.ts';
import { route } from '../route.ts';
import { IssuedKey, IssueKeyBody, KeyBody, KeyParams, KeysQuery } from '../schemas/keys.ts';
import { listOf } from '../schemas/lists.ts';
import type { SecretKeys } from '../../lib/secret-key.ts';

interface KeyRoutesDeps {
  readonly pool: Pool;
  readonly limits: Pick<Limits, 'organization'>;
  readonly secretKey: SecretKeys;
}

const tags = ['API keys'];

export function issue({ pool, limits }: KeyRoutesDeps) {
  return route(
    {
      tags,
      operationId: 'createApiKey',
      summary: 'Make an API key',
      description:
        'The response contains the key, which is shown this once. A key makes no key that may do more than itself, from ' +
        'other domains or addresses, or for longer: `domain_ids`, `allowed_ips` and `expires_at` that limit the key that ' +
        'asks have to be given, and to lie within its own.',
      body: IssueKeyBody,
      response: { 201: IssuedKey },
    },
    async (request) => {
      const caller = callerOf(request);
      return withinLimit(pool, limits.organization, 'keys', caller.org_id, (client) =>
        issueKey(client, caller.org_id, request.body, caller),
      );
    },
  );
}

export function list({ pool, secretKey }: KeyRoutesDeps) {
  return listRoute(
    secretKey,
    'keys',
    {
      tags,
      operationId: 'listApiKeys',
      summary: 'List API keys',
      description:
        'Keys that were not revoked, expired ones too, newest first. Follow `next_cursor` until it is null. A key ' +
        'for certain domains sees keys for those domains only.',
      querystring: KeysQuery,
      response: { 200: listOf('keys', KeyBody) },
    },
    (request) => {
      const { org_id: orgId, domain_ids: within } = callerOf(request);
      return { find: (after, limit) => listKeys(pool, orgId, after, limit, within) };
    },
  );
}

export function get({ pool }: KeyRoutesDeps) {
  return route(
    {
      tags,
      operationId: 'getApiKey',
      summary: 'Get an API key',
      description: 'What a key may do, and when it was last used.',
      params: KeyParams,
      response: { 200: KeyBody },
    },
    (request) => {
      const { org_id: orgId, domain_ids: within } = callerOf(request);
      return requireKey(pool, orgId, request.params.id, within);
    },
  );
}

export function revoke({ pool }: KeyRoutesDeps) {
  return route(
    {
      tags,
      operationId: 'deleteApiKey',
      summary: 'Revoke an API key',
      description: 'It is refused within a second, for good. A key may revoke itself.',
      params: KeyParams,
      response: { 204: Type.Null() },
    },
    async (request) => {
      const { org_id: orgId, domain_ids: within } = callerOf(request);
      await removeKey(pool, orgId, request.params.id, within);
    },
  );
}
