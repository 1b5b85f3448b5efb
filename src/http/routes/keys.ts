import { Type } from 'typebox';
import { PAGE_LENGTH } from '../../domain/limits.ts';
import { issueKey, removeKey, requireKey } from '../../intake/keys.ts';
import { listKeys } from '../../store/keys.ts';
import type { Db } from '../../store/pool.ts';
import { callerOf } from '../auth.ts';
import { endPage, makeCursors } from '../cursor.ts';
import { route } from '../route.ts';
import { errorResponses } from '../schemas/common.ts';
import { IssuedKey, IssueKeyBody, KeyBody, KeyParams, KeysQuery } from '../schemas/keys.ts';
import { listOf } from '../schemas/lists.ts';
import type { SecretKeys } from '../../domain/secret-key.ts';

/** What the routes about keys need. */
interface KeyRoutesDeps {
  readonly pool: Db;
  readonly secretKey: SecretKeys;
}

const tags = ['API keys'];

export function issue({ pool }: KeyRoutesDeps) {
  return route(
    {
      tags,
      summary: 'Make an API key',
      description:
        'Its answer holds the key, which is shown this once. A key that may send from certain domains only makes keys for ' +
        'those domains only.',
      body: IssueKeyBody,
      response: { 201: IssuedKey, ...errorResponses(400, 401, 403, 413, 415, 422, 500, 503) },
    },
    async (request, reply) => {
      const { org_id: orgId, domain_ids: domainIds } = callerOf(request);
      const issued = await issueKey(pool, orgId, request.body, domainIds);
      reply.code(201);
      return issued;
    },
  );
}

export function list({ pool, secretKey }: KeyRoutesDeps) {
  const cursors = makeCursors(secretKey);
  return route(
    {
      tags,
      summary: 'List API keys',
      description: 'Keys that were not revoked, expired ones too, newest first. Follow `next_cursor` until it is null.',
      querystring: KeysQuery,
      response: { 200: listOf('keys', KeyBody), ...errorResponses(401, 403, 422, 500, 503) },
    },
    async (request) => {
      const { limit = PAGE_LENGTH, cursor } = request.query;
      const listing = { list: 'keys', orgId: callerOf(request).org_id, filters: {} };
      const after = cursor === undefined ? null : cursors.open(listing, cursor);
      const found = await listKeys(pool, listing.orgId, after, limit + 1);
      const { rows, ...end } = endPage(cursors, listing, found, limit);
      return { keys: rows, ...end };
    },
  );
}

export function get({ pool }: KeyRoutesDeps) {
  return route(
    {
      tags,
      summary: 'Get an API key',
      description: 'What a key may do, and when it was last used.',
      params: KeyParams,
      response: { 200: KeyBody, ...errorResponses(401, 403, 404, 422, 500, 503) },
    },
    (request) => requireKey(pool, callerOf(request).org_id, request.params.id),
  );
}

export function revoke({ pool }: KeyRoutesDeps) {
  return route(
    {
      tags,
      summary: 'Revoke an API key',
      description: 'It is refused within a second, for good. A key may revoke itself.',
      params: KeyParams,
      response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 413, 415, 422, 500, 503) },
    },
    async (request, reply) => {
      await removeKey(pool, callerOf(request).org_id, request.params.id);
      return reply.code(204).send();
    },
  );
}
