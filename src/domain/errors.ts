/** Error codes in the customer's terms, independent of HTTP: `src/http/plugins/errors.ts` maps them to statuses. */
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
  'no_sms_sender',
  'rate_limit_exceeded',
  'quota_exceeded',
  'internal_error',
  'unavailable',
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/** One fault of a request. `message` begins with `param`, the dotted path of the invalid field, if there is one. */
export interface Fault {
  readonly param?: string;
  readonly message: string;
}

/** An error that is returned to the caller: `message` is for people, `param` the dotted path of the invalid field. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly param: string | undefined;
  /** Whole seconds after which the same request may succeed; undefined when waiting does not help. */
  readonly retryAfterSeconds: number | undefined;
  readonly #problem: string;
  #others: readonly ServiceError[] = [];

  constructor(code: ErrorCode, message: string, param?: string, retryAfterSeconds?: number) {
    super(param === undefined ? message : `${param}: ${message}`);
    this.name = 'ServiceError';
    this.code = code;
    this.param = param;
    this.retryAfterSeconds = retryAfterSeconds;
    this.#problem = message;
  }

  /** Returns the same error with `path` prepended to its parameter, and to those of its other faults. */
  within(path: string): ServiceError {
    const param = this.param === undefined ? path : `${path}.${this.param}`;
    return new ServiceError(this.code, this.#problem, param).and(this.#others.map((other) => other.within(path)));
  }

  /** Adds errors of the same request, which are listed behind this one. */
  and(others: readonly ServiceError[]): this {
    this.#others = [...this.#others, ...others];
    return this;
  }

  /** All faults of the request that were found, beginning with this one. */
  get faults(): Fault[] {
    const first = { ...(this.param !== undefined && { param: this.param }), message: this.message };
    return [first, ...this.#others.flatMap(({ faults }) => faults)];
  }
}

/** The error for an id that does not exist, with the same message for one of another organization. */
export function notFound(what: string): ServiceError {
  return new ServiceError('not_found', `there is no ${what} with this id`);
}

/** @throws ServiceError not_found */
export function requireFound<T>(row: T | null | undefined, what: string): T {
  if (!row) throw notFound(what);
  return row;
}

/** Returns the parsed value. @throws ServiceError validation_error for the parser's message */
export function requireValid<T extends object>(parsed: T | string, param: string): T {
  if (typeof parsed === 'string') throw new ServiceError('validation_error', parsed, param);
  return parsed;
}

/** @throws ServiceError validation_error if there is a problem */
export function refuseProblem(problem: string | undefined, param: string): void {
  if (problem !== undefined) throw new ServiceError('validation_error', problem, param);
}

export function noOrganization(orgId: string): ServiceError {
  return new ServiceError('not_found', `there is no organization ${orgId}`, 'organization');
}

/** An error in a field's value. `path` leads from the checked value to the invalid part; absent for the value itself. */
export interface Problem {
  readonly message: string;
  readonly path?: string;
}
