/**
 * What can be wrong with a request, in the customer's terms. Knows nothing of HTTP: `src/http/plugins/errors.ts` turns codes
 * into statuses at the last step.
 */
export const ERROR_CODES = [
  'invalid_json',
  'invalid_idempotency_key',
  'unauthorized',
  'insufficient_scope',
  'domain_not_found',
  'domain_not_verified',
  'not_found',
  'method_not_allowed',
  'conflict',
  'limit_exceeded',
  'invalid_idempotent_request',
  'concurrent_idempotent_requests',
  'content_erased',
  'payload_too_large',
  'unsupported_media_type',
  'validation_error',
  'invalid_attachment',
  'not_scheduled',
  'no_chatapp_account',
  'rate_limit_exceeded',
  'quota_exceeded',
  'internal_error',
  'unavailable',
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/** An error that a caller is told about: `message` is for people, `param` the dotted path of the field at fault. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly param: string | undefined;
  /** Whole seconds after which the same request may be granted; undefined where time alone changes nothing. */
  readonly retryAfterSeconds: number | undefined;
  readonly #problem: string;

  constructor(code: ErrorCode, message: string, param?: string, retryAfterSeconds?: number) {
    super(param === undefined ? message : `${param}: ${message}`);
    this.name = 'ServiceError';
    this.code = code;
    this.param = param;
    this.retryAfterSeconds = retryAfterSeconds;
    this.#problem = message;
  }

  /** The same error about a part of something larger, to which `path` leads. */
  within(path: string): ServiceError {
    return new ServiceError(this.code, this.#problem, this.param === undefined ? path : `${path}.${this.param}`);
  }
}

/** Something wrong with a field's value. `path` leads from the checked value to the part at fault; absent: itself. */
export interface Problem {
  readonly message: string;
  readonly path?: string;
}
