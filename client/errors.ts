import type { components } from './openapi.ts';

/**
 * The codes of the API, and those of the client: there was no response, it was too late, it did not come from Sendwright, or
 * an argument is not valid and no request was sent.
 */
export type ErrorCode =
  components['schemas']['Error']['error']['code'] | 'no_answer' | 'timeout' | 'unexpected_answer' | 'invalid_argument';

/** One fault of a request. */
export type Fault = components['schemas']['Fault'];

/** The fields of an error besides its message. */
export interface ErrorDetails {
  readonly code: ErrorCode;
  /** The HTTP status; undefined without a response. */
  readonly status?: number | undefined;
  /** The dotted path of the first invalid field, such as `to.3`, or the client's option. */
  readonly param?: string | undefined;
  /** Every fault of a request with the code `validation_error`, beginning with that of the message. */
  readonly errors?: readonly Fault[] | undefined;
  /** A link to the documentation of the code. */
  readonly docs?: string | undefined;
  /** Identifies the request in the service's log. */
  readonly requestId?: string | undefined;
  /** Seconds after which the same request may succeed. */
  readonly retryAfter?: number | undefined;
  readonly cause?: unknown;
}

/** A request that failed. The message is for people; it begins with `param` if there is one. */
export class SendwrightError extends Error {
  override readonly name = 'SendwrightError';
  readonly code: ErrorCode;
  readonly status: number | undefined;
  readonly param: string | undefined;
  readonly errors: readonly Fault[];
  readonly docs: string | undefined;
  readonly requestId: string | undefined;
  readonly retryAfter: number | undefined;

  constructor(message: string, { errors = [], docs, ...details }: ErrorDetails) {
    const { code, status, param, requestId, retryAfter, cause } = details;
    super(message, { cause });
    this.code = code;
    this.status = status;
    this.param = param;
    this.errors = errors;
    this.docs = docs;
    this.requestId = requestId;
    this.retryAfter = retryAfter;
  }
}
