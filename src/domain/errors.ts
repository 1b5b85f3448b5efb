/**
 * What can be wrong with a request, in the customer's terms. Knows nothing of HTTP: `src/http/errors.ts` turns codes
 * into statuses at the last step.
 */
export type ErrorCode =
  | 'invalid_json'
  | 'unauthorized'
  | 'insufficient_scope'
  | 'domain_not_found'
  | 'domain_not_verified'
  | 'not_found'
  | 'method_not_allowed'
  | 'conflict'
  | 'payload_too_large'
  | 'unsupported_media_type'
  | 'validation_error'
  | 'not_scheduled'
  | 'internal_error'
  | 'unavailable';

/** An error that a caller is told about: `message` is for people, `param` the dotted path of the field at fault. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly param: string | undefined;

  constructor(code: ErrorCode, message: string, param?: string) {
    super(param === undefined ? message : `${param}: ${message}`);
    this.name = 'ServiceError';
    this.code = code;
    this.param = param;
  }
}

/** Something wrong with a field's value. `path` leads from the checked value to the part at fault; absent: itself. */
export interface Problem {
  readonly message: string;
  readonly path?: string;
}
