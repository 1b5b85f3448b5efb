import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorCode, ServiceError } from '../domain/errors.ts';
import { isUnreachable } from '../store/pool.ts';

/** The one table from error codes to HTTP statuses. */
export const STATUS: Readonly<Record<ErrorCode, number>> = {
  invalid_json: 400,
  unauthorized: 401,
  domain_not_found: 403,
  domain_not_verified: 403,
  insufficient_scope: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  validation_error: 422,
  not_scheduled: 422,
  internal_error: 500,
  unavailable: 503,
};

/** What Fastify finds wrong before a handler runs, in the contract's terms. */
const FRAMEWORK_ERRORS: Readonly<Record<string, [ErrorCode, string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: ['payload_too_large', 'the request body is too large'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['unsupported_media_type', 'the request body must be application/json'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['invalid_json', 'the request body is not as long as Content-Length says'],
  FST_ERR_BAD_URL: ['not_found', 'there is nothing at this address'],
};

/** An error as callers get it; `cause` is for the log only. */
export function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const [code, message] = FRAMEWORK_ERRORS[(error as Partial<FastifyError> | null)?.code ?? ''] ?? [];
  if (code && message) return new ServiceError(code, message);
  if (isUnreachable(error)) return new ServiceError('unavailable', 'the service cannot reach its database; try again');
  return new ServiceError('internal_error', 'something went wrong on our side');
}

/** Fastify's error handler: logs what is our fault and answers with the contract's envelope. */
export function sendError(failure: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const error = toServiceError(failure);
  const status = STATUS[error.code];
  if (status >= 500) request.log.error({ err: failure }, error.message);
  if (error.code === 'unavailable') reply.header('retry-after', '1');
  if (error.code === 'unauthorized') reply.header('www-authenticate', 'Bearer');
  // Refused before it was read: closing is what spares both sides the rest of a large body.
  if (!request.raw.complete) reply.header('connection', 'close');
  return reply
    .code(status)
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(envelope(error, request.id)));
}

/** decisions on every response: `{"error":{code, message, param?, request_id}}`. */
export function envelope(error: ServiceError, requestId: string) {
  const { code, message, param } = error;
  return { error: { code, message, ...(param !== undefined && { param }), request_id: requestId } };
}
