import { timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { digest } from '../../lib/digest.ts';
import { ServiceError } from '../../domain/errors.ts';
import { isInRanges } from '../../lib/ip-ranges.ts';
import type { Changer } from '../../accounts/audit.ts';
import type { Caller } from '../../intake/emails.ts';
import type { NetworkLimits } from '../../intake/network-limits.ts';
import { parseApiKey } from '../../accounts/keys.ts';
import type { KeyCache } from '../../store/accounts/key-cache.ts';
import type { ApiKey, Preset } from '../../store/accounts/keys.ts';

/**
 * The permission that a route requires: `send` (send and change email), `chat` (send chat-app messages and SMS), `manage` (change
 * the account). `manage` routes affect the whole organization and refuse keys that are restricted to domains. `manage-lasting` routes
 * make something that gives access or receives data on its own, so they also refuse keys that are restricted in time or to addresses.
 * `manage-bounded` routes accept restricted keys and keep what these make within their restrictions. `public` routes need no key.
 */
export type Scope = 'public' | 'read' | 'send' | 'chat' | 'manage' | 'manage-lasting' | 'manage-bounded';

declare module 'fastify' {
  interface FastifyRequest {
    /** The API key of the request. It is set on all routes that are not public. */
    caller: ApiKey | null;
    /** The organization of that key. Reading it without a key throws an error. */
    orgId: string;
  }
}

const SCOPES_OF: Readonly<Record<Preset, readonly Scope[]>> = {
  full_access: ['read', 'send', 'chat', 'manage', 'manage-lasting', 'manage-bounded'],
  sending_access: ['send', 'chat'],
  read_only: ['read'],
};

const OF_ORGANIZATION = 'this API key is for certain domains only, and this request concerns the whole organization';
/** Errors for keys that are restricted to domains. */
const DOMAINS_ONLY: Partial<Record<Scope, string>> = {
  chat: 'this API key may send from certain domains only, and no chat-app messages or SMS',
  manage: OF_ORGANIZATION,
  'manage-lasting': OF_ORGANIZATION,
};

/**
 * Finds the API key of a request by its Authorization header.
 * @throws ServiceError rate_limit_exceeded if the caller's network has used too many invalid keys; unauthorized for an invalid
 * key or a forbidden address, with the same message for all reasons
 */
export async function authenticate(keys: KeyCache, networks: NetworkLimits, request: FastifyRequest): Promise<ApiKey> {
  const token = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1];
  const parts = token === undefined ? undefined : parseApiKey(token);
  // Only an uncached id needs a query. So a cached key is never refused because of its network.
  if (parts && !keys.isCached(parts.id)) networks.check(request.ip);
  const key = parts && (await keys.find(parts.id));
  const isRight = parts && key && timingSafeEqual(digest(parts.secret), key.sha256);
  if (parts && !isRight) networks.countFailure(request.ip);
  if (!isRight || (key.allowed && !isInRanges(request.ip, key.allowed))) {
    throw new ServiceError('unauthorized', 'a valid API key is required: Authorization: Bearer <API_KEY>');
  }
  keys.recordUse(key.id);
  return key;
}

const LASTING =
  'this API key is limited in time or to addresses, and what this request makes would give access or receive data beyond it; use a key without these limits';

/** @throws ServiceError insufficient_scope */
export function authorize(key: ApiKey, scope: Exclude<Scope, 'public'>): void {
  if (!SCOPES_OF[key.preset].includes(scope)) {
    throw new ServiceError('insufficient_scope', `this API key has ${key.preset}, which does not allow this request`);
  }
  const refusal = key.domain_ids && DOMAINS_ONLY[scope];
  if (refusal) throw new ServiceError('insufficient_scope', refusal);
  const isTemporary = key.expires_at !== null || key.allowed_ips !== null;
  if (scope === 'manage-lasting' && isTemporary) throw new ServiceError('insufficient_scope', LASTING);
}

/** Adds `caller` and `orgId` to requests. */
export function decorateCaller(app: FastifyInstance): void {
  app.decorateRequest('caller', null);
  app.decorateRequest('orgId', {
    getter() {
      return callerOf(this).org_id;
    },
  });
}

/** @throws ServiceError insufficient_scope for a domain that a restricted key may not use */
export function authorizeDomain({ domain_ids: domainIds }: ApiKey, id: string): void {
  if (domainIds === null || domainIds.includes(id)) return;
  throw new ServiceError('insufficient_scope', 'this API key is not for this domain');
}

/** Makes every route of a plugin public. The plugin authenticates callers itself or needs no authentication. */
export function makePublic(plugin: FastifyInstance): void {
  plugin.addHook('onRoute', (route) => {
    route.config = { ...route.config, scope: 'public' };
  });
}

/** Returns the API key of a request on a route that requires one. */
export function callerOf(request: FastifyRequest): ApiKey {
  if (!request.caller) throw new Error('a route that needs a key was reached without one');
  return request.caller;
}

/** Returns the API key of a request as the sender of emails and the actor of changes to them. */
export function changerOf(request: FastifyRequest): Changer & Caller {
  const { id, org_id: orgId, domain_ids: domainIds } = callerOf(request);
  return { orgId, domainIds, keyId: id, actor: { actor_kind: 'key', actor_id: id } };
}
