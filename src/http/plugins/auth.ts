import { timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { digest } from '../../lib/digest.ts';
import { ServiceError } from '../../domain/errors.ts';
import { isAllowed } from '../../lib/ip-ranges.ts';
import type { Changer } from '../../accounts/actor.ts';
import type { NetworkLimits } from '../../intake/network-limits.ts';
import { parseApiKey } from '../../accounts/keys.ts';
import type { KeyRing } from '../../store/accounts/key-cache.ts';
import type { ApiKey, Preset } from '../../store/accounts/keys.ts';

/**
 * What a route asks of a key: `send` email or change what was sent, send `chat`-app messages, `manage` the account itself.
 * A key for certain domains may not `manage` what concerns the whole organization; `manage-bounded` routes admit it and
 * keep it to what belongs to its domains. `public` routes are called without a key.
 */
export type Scope = 'public' | 'read' | 'send' | 'chat' | 'manage' | 'manage-bounded';

declare module 'fastify' {
  interface FastifyRequest {
    /** The key that calls; set on every route that is not public. */
    caller: ApiKey | null;
  }
}

const MAY: Readonly<Record<Preset, readonly Scope[]>> = {
  full_access: ['read', 'send', 'chat', 'manage', 'manage-bounded'],
  sending_access: ['send', 'chat'],
  read_only: ['read'],
};

/**
 * Finds the key of a request by its Authorization header.
 * @throws ServiceError rate_limit_exceeded when the caller's network has used too many wrong keys; unauthorized, in the same words whatever is wrong with it, also when it is used from elsewhere
 */
export async function authenticate(keys: KeyRing, networks: NetworkLimits, request: FastifyRequest): Promise<ApiKey> {
  const token = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1];
  const parts = token === undefined ? undefined : parseApiKey(token);
  // Only an id that may cost a query for nothing: a known key is never refused for what its network does.
  if (parts && !keys.isKnown(parts.id)) networks.check(request.ip);
  const key = parts && (await keys.find(parts.id));
  const isRight = parts && key && timingSafeEqual(digest(parts.secret), key.sha256);
  if (parts && !isRight) networks.countFailure(request.ip);
  if (!isRight || (key.allowed && !isAllowed(request.ip, key.allowed))) {
    throw new ServiceError('unauthorized', 'a valid API key is required: Authorization: Bearer <API_KEY>');
  }
  keys.used(key.id);
  return key;
}

/** @throws ServiceError insufficient_scope */
export function authorize(key: ApiKey, scope: Scope): void {
  if (scope === 'public') return;
  if (!MAY[key.preset].includes(scope)) {
    throw new ServiceError('insufficient_scope', `this API key has ${key.preset}, which does not allow this request`);
  }
  if (scope === 'chat' && key.domain_ids) {
    throw new ServiceError(
      'insufficient_scope',
      'this API key may send from certain domains only, and no chat-app messages',
    );
  }
  if (scope === 'manage' && key.domain_ids) {
    throw new ServiceError(
      'insufficient_scope',
      'this API key is for certain domains only, and this request concerns the whole organization',
    );
  }
}

/** @throws ServiceError insufficient_scope for a domain that the key is not for */
export function authorizeDomain({ domain_ids: domainIds }: ApiKey, id: string): void {
  if (domainIds === null || domainIds.includes(id)) return;
  throw new ServiceError('insufficient_scope', 'this API key is not for this domain');
}

/** Lets every route of a plugin be called without a key: it has its own way to know who calls, or needs none. */
export function openToAll(plugin: FastifyInstance): void {
  plugin.addHook('onRoute', (route) => {
    route.config = { ...route.config, scope: 'public' };
  });
}

/** The key that calls, on a route that needs one. */
export function callerOf(request: FastifyRequest): ApiKey {
  if (!request.caller) throw new Error('a route that needs a key was reached without one');
  return request.caller;
}

/** The key that calls, as it changes emails. */
export function changerOf(request: FastifyRequest): Changer {
  const { id, domain_ids: domainIds } = callerOf(request);
  return { domainIds, actor: { actor_kind: 'key', actor_id: id } };
}
