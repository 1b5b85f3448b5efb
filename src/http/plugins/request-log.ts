import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ErrorCode } from '../../domain/errors.ts';
import type { RequestLog } from '../../store/accounts/request-log.ts';

declare module 'fastify' {
  interface FastifyReply {
    /** The code of an error response; null for a success. */
    errorCode: ErrorCode | null;
  }
}

/**
 * Records an answered request for its organization: each one with an API key, and those of the dashboard that failed on our
 * side, whose error page shows the request id. It contains the path of the route but no values, which may be addresses.
 */
export function recordRequest(log: Pick<RequestLog, 'record'>, request: FastifyRequest, reply: FastifyReply): void {
  const { caller, sessionOrgId, id, method, routeOptions } = request;
  const { statusCode: status, elapsedTime, errorCode } = reply;
  const orgId = caller?.org_id ?? (status >= 500 ? sessionOrgId : null);
  if (orgId === null) return;
  log.record({
    id,
    org_id: orgId,
    key_id: caller?.id ?? null,
    method,
    path: routeOptions.url ?? null,
    status,
    error_code: errorCode,
    duration_ms: Math.round(elapsedTime),
  });
}
