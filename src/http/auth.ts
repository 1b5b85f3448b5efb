import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ServiceError } from '../domain/errors.ts';
import { parseApiKey } from '../intake/accounts.ts';
import { type ApiKey, findKey, type Preset } from '../store/accounts.ts';
import type { Db } from '../store/pool.ts';

/** What a route asks of a key: `manage` is what changes the account itself; `public` routes are called without one. */
export type Scope = 'public' | 'read' | 'send' | 'manage';

declare module 'fastify' {
  interface FastifyRequest {
    /** The key that calls; set on every route that is not public. */
    caller: ApiKey | null;
  }
}

const MAY: Readonly<Record<Preset, readonly Scope[]>> = {
  full_access: ['read', 'send', 'manage'],
  sending_access: ['send'],
  read_only: ['read'],
};

/**
 * Finds the key of a request by its Authorization header.
 * @throws ServiceError unauthorized, in the same words whatever is wrong with it
 */
export async function authenticate(db: Db, request: FastifyRequest): Promise<ApiKey> {
  const token = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1];
  const parts = token === undefined ? undefined : parseApiKey(token);
  const key = parts && (await findKey(db, parts.id));
  if (!parts || !key || !timingSafeEqual(createHash('sha256').update(parts.secret).digest(), key.sha256)) {
    throw new ServiceError('unauthorized', 'a valid API key is required: Authorization: Bearer <API_KEY>');
  }
  return key;
}

/** @throws ServiceError insufficient_scope */
export function authorize(key: ApiKey, scope: Scope): void {
  if (!MAY[key.preset].includes(scope) && scope !== 'public') {
    throw new ServiceError('insufficient_scope', `this API key has ${key.preset}, which does not allow this request`);
  }
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
