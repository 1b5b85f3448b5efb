import { Type } from 'typebox';
import { ERROR_CODES } from '../../domain/errors.ts';
import { IDEMPOTENCY_KEY_LENGTH } from '../../domain/limits.ts';

/** UTC with milliseconds. */
export const Timestamp = Type.String({
  format: 'date-time',
  description: 'UTC with milliseconds',
  examples: ['2026-03-01T09:30:00.000Z'],
});

/** The body of every error response. */
export const ErrorBody = Type.Object(
  {
    error: Type.Object({
      code: Type.Enum([...ERROR_CODES], {
        description: 'For machines; see the table of error codes.',
        examples: ['validation_error'],
      }),
      message: Type.String({
        description: 'For people; begins with the field at fault, if there is one.',
        examples: ['subject: must be 1 to 998 characters'],
      }),
      param: Type.Optional(
        Type.String({ description: 'Dotted path of the first field at fault.', examples: ['to.3'] }),
      ),
      request_id: Type.String({ examples: ['req_01kajc8wz6h3xkq3m1x8e6v5tn'] }),
    }),
  },
  { $id: 'Error', description: 'An error' },
);

/** Response schemas for these statuses, all with the error body. */
export function errorResponses(...statuses: number[]) {
  return Object.fromEntries(statuses.map((status) => [status, Type.Ref('Error#')]));
}

/** The header of requests that may be repeated. Its rules are looked at before the fields of the body. */
export const IdempotencyHeader = Type.Object({
  'idempotency-key': Type.Optional(
    Type.String({
      description: `1 to ${IDEMPOTENCY_KEY_LENGTH} characters. A request that is repeated with the same key and body within 24 hours is not obeyed again: the first answer is given once more, with \`Idempotent-Replayed: true\`.`,
      examples: ['order-4711'],
    }),
  ),
});
