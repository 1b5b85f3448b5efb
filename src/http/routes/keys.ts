import { Type } from 'typebox';
import { issueKey, removeKey, requireKey } from '../../accounts/keys.ts';
import { withinLimit } from '../../accounts/organization-limits.ts';
import { listKeys } from '../../store/accounts/keys.ts';
import { callerOf } from '../plugins/auth.ts';
import { listRoute } from '../list-route.ts';
import { route } from '../route.ts';
import { IssuedKey, IssueKeyBody, KeyBody, KeyParams } from '../schemas/keys.ts';

export const issue = route('createApiKey', 'Make an API key', {
  description:
    'The response contains the key, which is shown this once. A key makes no key that may do more than itself, from ' +
    'other domains or addresses, or for longer: `domain_ids`, `allowed_ips` and `expires_at` that limit the key that ' +
    'asks have to be given, and to lie within its own.',
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
    'Keys that were not revoked, expired ones too, newest first. Follow `next_cursor` until it is null. A key ' +
    'for certain domains sees keys for those domains only.',
  read: ({ pool }, request, after, limit) => listKeys(pool, request.orgId, after, limit, callerOf(request).domain_ids),
});

export const get = route('getApiKey', 'Get an API key', {
  description: 'What a key may do, and when it was last used.',
  params: KeyParams,
  response: { 200: KeyBody },
  handler: ({ pool }, request) => requireKey(pool, request.orgId, request.params.id, callerOf(request).domain_ids),
});

export const revoke = route('deleteApiKey', 'Revoke an API key', {
  description: 'It is refused within a second, for good. A key may revoke itself.',
  params: KeyParams,
  response: { 204: Type.Null() },
  handler: async ({ pool }, request) => {
    await removeKey(pool, request.orgId, request.params.id, callerOf(request).domain_ids);
  },
});
