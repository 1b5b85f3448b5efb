import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ErrorCode } from '../../domain/errors.ts';
import type { RequestLog } from '../../store/accounts/request-log.ts';

declare module 'fastify' {
  interface FastifyReply {
    /** The code of an error response; null for other responses. */
    errorCode: ErrorCode | null;
  }
}

/**
 * Records a request in its organization's log after the response: all requests with an API key, and dashboard requests that
 * failed with a 5xx, whose error page shows the request id. It records the route's pattern without values, which may be
 * addresses.
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
