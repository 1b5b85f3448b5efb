import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { ConnectionError, FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorCode, ServiceError } from '../../domain/errors.ts';
import { newId } from '../../lib/ids.ts';
import { RateLimitExceeded } from '../../intake/rate-limits.ts';
import { FileStoreUnavailable } from '../../store/files/file-store.ts';
import { isStatementTimeout, isUnreachable } from '../../store/postgres/pool.ts';
import { formatNumber } from '../../lib/text.ts';

/** A refused body whose Content-Length is at most this is read and discarded, to keep the connection. */
const MAX_DISCARDED_BYTES = 65_536;
/** The time between a response and the closing of its connection while the client is still sending. */
const LINGER_MS = 1_000;

/** Long enough for the longest header name and the path to it. */
const MAX_PARAM_LENGTH = 200;

/** The HTTP statuses of errors of the API. The dashboard has its own (`dashboard/errors.tsx`). */
export const STATUS: Readonly<Record<ErrorCode, number>> = {
  invalid_json: 400,
  invalid_idempotency_key: 400,
  unauthorized: 401,
  domain_not_found: 403,
  domain_not_verified: 403,
  insufficient_scope: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  limit_exceeded: 409,
  invalid_idempotent_request: 409,
  concurrent_idempotent_requests: 409,
  content_erased: 410,
  payload_too_large: 413,
  unsupported_media_type: 415,
  validation_error: 422,
  invalid_attachment: 422,
  not_scheduled: 422,
  no_chatapp_account: 422,
  no_sms_sender: 422,
  rate_limit_exceeded: 429,
  quota_exceeded: 429,
  internal_error: 500,
  unavailable: 503,
};

declare module 'fastify' {
  interface FastifyInstance {
    /** `PUBLIC_URL`, which links in errors begin with. */
    publicUrl?: string | undefined;
  }
}

/** Maps Fastify's errors to errors of the API. */
const FRAMEWORK_ERRORS: Readonly<Record<string, [ErrorCode, string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: ['payload_too_large', 'the request body is too large'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    'unsupported_media_type',
    'the request body must be JSON; send the header Content-Type: application/json',
  ],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['invalid_json', 'the request body is not as long as Content-Length says'],
};

/** Creates the error for a body that is too large. @param limit the maximum size in bytes */
export function tooLarge(limit: number): ServiceError {
  const megabytes = limit >= 1_048_576 ? `${Math.floor(limit / 104_857.6) / 10} MB, ` : '';
  const max = `${megabytes}${formatNumber(limit)} bytes`;
  return new ServiceError('payload_too_large', `the request body is too large; at most ${max} are allowed`);
}

/** Converts an error into one that may be returned to the caller. */
export function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const [code, message] = FRAMEWORK_ERRORS[(error as Partial<FastifyError> | null)?.code ?? ''] ?? [];
  if (code && message) return new ServiceError(code, message);
  if (isStatementTimeout(error))
    return new ServiceError(
      'unavailable',
      'this takes the database too long; try again, or ask for less',
      undefined,
      5,
    );
  if (isUnreachable(error)) return new ServiceError('unavailable', 'the service cannot reach its database; try again');
  if (error instanceof FileStoreUnavailable) {
    return new ServiceError('unavailable', 'the service cannot reach its attachment store; try again');
  }
  return new ServiceError('internal_error', 'something went wrong on our side');
}

/** Fastify's error handler. Logs errors with a 5xx status, and responds with the error envelope of the API. */
export function sendError(failure: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  // The caller disconnected while sending. That must not be mistaken for a lost database connection.
  const hasDisconnected = failure === request.raw.errored;
  const error = hasDisconnected
    ? new ServiceError('invalid_json', 'the request body ended early')
    : toServiceError(failure);
  const status = STATUS[error.code];
  reply.errorCode = error.code;
  if (hasDisconnected) request.log.info('the caller hung up');
  if (status >= 500) request.log.error({ err: failure }, error.message);
  if (error.code === 'unavailable') reply.header('retry-after', '1');
  if (error.retryAfterSeconds !== undefined) reply.header('retry-after', String(error.retryAfterSeconds));
  if (error instanceof RateLimitExceeded && error.state) reply.rateLimitState = error.state;
  if (error.code === 'unauthorized') reply.header('www-authenticate', 'Bearer');
  if (hasLongRest(request)) {
    reply.header('connection', 'close');
    closeSlowly(request.raw);
  }
  return reply
    .code(status)
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(envelope(error, request.id, docsBaseOf(request))));
}

/** Returns the address of the service that links in a response begin with: `PUBLIC_URL`, or the one that the caller used. */
function docsBaseOf({ server, protocol, host }: FastifyRequest): string {
  return (server.publicUrl ?? `${protocol}://${host}`).replace(/\/$/, '');
}

/** Returns true if reading the rest of a refused body costs more than a new connection. */
function hasLongRest({ raw, headers }: FastifyRequest): boolean {
  return !raw.complete && !(Number(headers['content-length']) <= MAX_DISCARDED_BYTES);
}

/**
 * Leaves the rest of a request unread, and closes the connection after its response in two steps. Closing it while the client
 * still sends would reset the connection, and the client might not get the response.
 */
function closeSlowly(request: IncomingMessage): void {
  // Without a listener, Node would read and discard the body.
  request.on('readable', () => undefined);
  request.read(1);
  const { socket } = request;
  socket.destroySoon = () => {
    socket.end();
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  };
}

/** Maps errors of Node's HTTP parser. Any other error results in 400. */
const BROKEN_REQUESTS: Readonly<Record<string, [status: number, ErrorCode, string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'payload_too_large', 'the request headers are too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'payload_too_large', 'the request body has too large chunk extensions'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'invalid_json', 'the request did not arrive in time'],
};

/**
 * Responds with the error envelope to bytes that are not a valid HTTP request, and closes the connection. The bytes may contain
 * an API key, so they are not logged.
 */
export function respondToBrokenRequest(
  this: FastifyInstance,
  failure: Pick<ConnectionError, 'code'>,
  socket: Socket,
): void {
  if (failure.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, code, message] = BROKEN_REQUESTS[failure.code] ?? [
    400,
    'invalid_json',
    'the request is not valid HTTP',
  ];
  const id = newId('req');
  this.log.info({ reqId: id, status, reason: failure.code }, 'broken request');
  const body = JSON.stringify(envelope(new ServiceError(code, message), id));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `x-request-id: ${id}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}

/**
 * Truncates a field's path for a response. Callers choose the names, which may be as long as the request, and may contain half of a
 * surrogate pair or be cut within one: many JSON parsers reject that.
 */
export function shortParam(param: string): string {
  return param.slice(0, MAX_PARAM_LENGTH).toWellFormed();
}

/**
 * The body of every error response: `{"error":{code, message, param?, errors?, docs, request_id}}`.
 * @param base the address of the service; '' for a link without a host
 */
export function envelope(error: ServiceError, requestId: string, base = '') {
  const { code, message, param } = error;
  return {
    error: {
      code,
      message,
      ...(param !== undefined && { param }),
      ...(code === 'validation_error' && { errors: error.faults }),
      docs: `${base}/docs/errors#${code}`,
      request_id: requestId,
    },
  };
}
