import type { components } from './openapi.ts';

/** The API's own codes, and three of the client's: nothing came back, not in time, or not from a Sendwright. */
export type ErrorCode = components['schemas']['Error']['error']['code'] | 'no_answer' | 'timeout' | 'unexpected_answer';

/** What is known of a failed request besides its message. */
export interface ErrorDetails {
  readonly code: ErrorCode;
  /** Of the answer; undefined when none came. */
  readonly status?: number | undefined;
  /** Dotted path of the first field at fault, such as `to.3`. */
  readonly param?: string | undefined;
  /** What to name when asking about the request. */
  readonly requestId?: string | undefined;
  /** Seconds after which the same request may be granted. */
  readonly retryAfter?: number | undefined;
  readonly cause?: unknown;
}

/** A request that was not obeyed. The message is for people; it begins with `param` if there is one. */
export class SendwrightError extends Error {
  override readonly name = 'SendwrightError';
  readonly code: ErrorCode;
  readonly status: number | undefined;
  readonly param: string | undefined;
  readonly requestId: string | undefined;
  readonly retryAfter: number | undefined;

  constructor(message: string, { code, status, param, requestId, retryAfter, cause }: ErrorDetails) {
    super(message, { cause });
    this.code = code;
    this.status = status;
    this.param = param;
    this.requestId = requestId;
    this.retryAfter = retryAfter;
  }
}
