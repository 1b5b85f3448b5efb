import { Type } from 'typebox';
import { issueKey, removeKey, requireKey } from '../../accounts/keys.ts';
import { withinLimit } from '../../accounts/organization-limits.ts';
import { listKeys } from '../../store/accounts/keys.ts';
import { callerOf } from '../plugins/auth.ts';
import { listRoute } from '../list-route.ts';
import { route } from '../route.ts';
import { IssuedKey, IssueKeyBody, KeyBody, KeyParams } from '../schemas/keys.ts';

export const issue = route('createApiKey', 'Create an API key', {
  description:
    'The response contains the key, which is shown only once. The new key cannot have more permissions, domains or ' +
    'addresses than the key that creates it, nor expire later: if `domain_ids`, `allowed_ips` or `expires_at` limit the ' +
    'creating key, they are required and must lie within its limits.',
  body: IssueKeyBody,
  response: { 201: IssuedKey },
  handler: ({ pool, limits }, request) =>
    withinLimit(pool, limits.organization, 'keys', request.orgId, (client) =>
      issueKey(client, request.orgId, request.body, callerOf(request)),
    ),
});

export const list = listRoute('listApiKeys', 'List API keys', {
  name: 'keys',
  item: KeyBody,
  description:
    'Keys that are not revoked, including expired ones, newest first. Follow `next_cursor` until it is null. A key ' +
    'for certain domains sees keys for those domains only.',
  read: ({ pool }, request, after, limit) => listKeys(pool, request.orgId, after, limit, callerOf(request).domain_ids),
});

export const get = route('getApiKey', 'Get an API key', {
  description: 'The permissions of a key, and when it was last used.',
  params: KeyParams,
  response: { 200: KeyBody },
  handler: ({ pool }, request) => requireKey(pool, request.orgId, request.params.id, callerOf(request).domain_ids),
});

export const revoke = route('deleteApiKey', 'Revoke an API key', {
  description: 'The key stops working within a second, permanently. A key may revoke itself.',
  params: KeyParams,
  response: { 204: Type.Null() },
  handler: async ({ pool }, request) => {
    await removeKey(pool, request.orgId, request.params.id, callerOf(request).domain_ids);
  },
});
