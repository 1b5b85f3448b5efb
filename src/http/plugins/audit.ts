import type { FastifyReply, FastifyRequest } from 'fastify';
import { insertAudit } from '../../store/accounts/audit.ts';
import type { Db } from '../../store/postgres/pool.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The id of what a request has made or changed, for the log and the audit log. */
    madeId: string | null;
  }
}

/** Remembers the id in an answer. */
export async function noteMade(request: FastifyRequest, _reply: FastifyReply, payload: unknown): Promise<unknown> {
  const { id } = (payload ?? {}) as { id?: unknown };
  if (typeof id === 'string') request.madeId = id;
  return payload;
}

/** Writes a change that succeeded into the audit log, before its answer leaves. A log that cannot be written is told. */
export function noteChange(db: Db) {
  return async (request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> => {
    const { caller, method, routeOptions, params, madeId } = request;
    if (!caller || method === 'GET' || reply.statusCode >= 400) return payload;
    const named = Object.values((params ?? {}) as Record<string, string>).at(-1);
    const change = {
      org_id: caller.org_id,
      actor_kind: 'key',
      actor_id: caller.id,
      action: actionOf(method, routeOptions.url ?? ''),
      target: named ?? madeId,
      detail: {},
    } as const;
    await insertAudit(db, change).catch((error: unknown) => {
      // The change is made: an error now would make its caller try again.
      request.log.error({ err: error, ...change }, 'a change is missing in the audit log');
    });
    return payload;
  };
}

const VERBS: Readonly<Record<string, string>> = { POST: 'create', PATCH: 'update', PUT: 'update', DELETE: 'delete' };

/**
 * What a route does, in the words of its path: `DELETE /v1/webhooks/:id` is `webhooks.delete`, and
 * `POST /v1/webhooks/:id/test` is `webhooks.test`.
 */
export function actionOf(method: string, url: string): string {
  const parts = url.split('/').slice(2);
  const words = parts.filter((part) => !part.startsWith(':'));
  const isVerb = method === 'POST' && parts.at(-2)?.startsWith(':') === true;
  return [...words, ...(isVerb ? [] : [VERBS[method] ?? method.toLowerCase()])].join('.');
}
