import type { FastifyReply, FastifyRequest } from 'fastify';
import { auditCommitted } from '../../accounts/audit.ts';
import { toIdOrAddress } from '../../accounts/suppressions.ts';
import type { Db } from '../../store/postgres/pool.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The id of the object that the request created or changed, for the log and the audit log. */
    targetId: string | null;
  }
}

export async function recordTargetId(
  request: FastifyRequest,
  _reply: FastifyReply,
  payload: unknown,
): Promise<unknown> {
  const { id } = (payload ?? {}) as { id?: unknown };
  if (typeof id === 'string') request.targetId = id;
  return payload;
}

/** Writes a successful change to the audit log before the response is sent. If that fails, it logs the error. */
export function auditChange(db: Db) {
  return async (request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> => {
    const { caller, method, routeOptions, params, targetId } = request;
    if (!caller || reply.statusCode >= 400) return payload;
    const named = Object.values((params ?? {}) as Record<string, string>).at(-1);
    await auditCommitted(db, request.log, {
      org_id: caller.org_id,
      actor_kind: 'key',
      actor_id: caller.id,
      action: actionOf(method, routeOptions.url ?? ''),
      // An address is normalized, so that an erasure finds it in the audit log.
      target: named === undefined ? targetId : toIdOrAddress(named),
      detail: {},
    });
    return payload;
  };
}

const VERBS: Readonly<Record<string, string>> = { POST: 'create', PATCH: 'update', DELETE: 'delete' };

/**
 * Returns the name of an action by its route: `DELETE /v1/webhooks/:id` is `webhooks.delete`, and
 * `POST /v1/webhooks/:id/test` is `webhooks.test`.
 */
function actionOf(method: string, url: string): string {
  const parts = url.split('/').slice(2);
  const words = parts.filter((part) => !part.startsWith(':'));
  const isVerb = method === 'POST' && parts.at(-2)?.startsWith(':') === true;
  return [...words, ...(isVerb ? [] : [VERBS[method] ?? method.toLowerCase()])].join('.');
}
