import { type TProperties, type TSchema, Type } from 'typebox';
import { ERROR_CODES } from '../../domain/errors.ts';
import { EVENT_TYPES, type EventType } from '../../domain/event-types.ts';
import { FAULTS_PER_RESPONSE, IDEMPOTENCY_KEY_LENGTH } from '../../domain/limits.ts';

/** Creates a request field that may be absent or null. */
export function optional<T = string>(type: string | readonly string[], schema: Record<string, unknown>) {
  return Type.Optional(Type.Unsafe<T | null>({ type: [type, 'null'].flat(), ...schema }));
}

/** Creates a response field that may be null. */
export function nullable<T extends TSchema>(schema: T, description?: string) {
  return Type.Union([schema, Type.Null()], description === undefined ? {} : { description });
}

/** Creates an object that has a name in the API description. */
export function objectOf<T extends TProperties>(title: string, properties: T) {
  return Type.Object(properties, { title });
}

/** Creates a request object that has a name in the API description. Unknown fields are refused. */
export function closedObject<T extends TProperties>(title: string, description: string | null, properties: T) {
  return ruledObject(null, title, description, properties);
}

/** Creates a closed object with a rule for several of its fields (`domain/rules.ts`). */
export function ruledObject<T extends TProperties>(
  rule: string | null,
  title: string,
  description: string | null,
  properties: T,
) {
  const more = { ...(rule !== null && { 'x-rule': rule }), ...(description !== null && { description }) };
  return Type.Object(properties, { title, additionalProperties: false, ...more });
}

/** Creates an enumeration that has a name in the API description. */
export function enumOf<const T extends string>(values: readonly T[], title: string, description = '', example?: T) {
  const examples = example === undefined ? {} : { examples: [example] };
  return Type.Enum([...values], { title, ...(description !== '' && { description }), ...examples });
}

/** Creates an enumeration of a request that may be absent or null. */
export function optionalEnum<const T extends string>(
  values: readonly T[],
  title: string,
  description: string,
  example: T,
) {
  return optional<T>('string', { title, enum: [...values, null], description, examples: [example] });
}

export const Timestamp = Type.String({
  format: 'date-time',
  description: 'UTC with milliseconds',
  examples: ['2026-03-01T09:30:00.000Z'],
});

export const EventTypeName = enumOf(EVENT_TYPES, 'EventType');

/** Returns the event types with a prefix, such as `email`. Received messages are excluded, because they have another payload. */
export function eventTypes(prefix: string): EventType[] {
  return EVENT_TYPES.filter((type) => type.startsWith(`${prefix}.`) && !type.endsWith('.received'));
}

/** @param more additional fields of the entries of this prefix */
export function timelineEntry(prefix: string, title: string, more: TProperties = {}) {
  return objectOf(`${title}TimelineEntry`, {
    type: enumOf(eventTypes(prefix), `${title}EventType`),
    created_at: Timestamp,
    ...more,
  });
}

const Fault = objectOf('Fault', {
  param: Type.Optional(Type.String({ description: 'Dotted path of a field at fault.', examples: ['to.3'] })),
  message: Type.String({ examples: ['subject: is required'] }),
});

/** The body of every error response. */
const ErrorBody = Type.Object(
  {
    error: Type.Object({
      code: enumOf(ERROR_CODES, 'ErrorCode', 'For machines; see the table of error codes.', 'validation_error'),
      message: Type.String({
        description: 'For people; begins with the field at fault, if there is one.',
        examples: ['subject: must be 1 to 998 characters'],
      }),
      param: Type.Optional(
        Type.String({ description: 'Dotted path of the first field at fault.', examples: ['to.3'] }),
      ),
      errors: Type.Optional(
        Type.Array(Fault, {
          maxItems: FAULTS_PER_RESPONSE,
          description: 'With `validation_error`: every fault that was found, beginning with the one in `message`.',
        }),
      ),
      docs: Type.String({
        description: 'The documentation of the code.',
        examples: ['https://send.example.com/docs/errors#validation_error'],
      }),
      request_id: Type.String({ examples: ['req_01kajc8wz6h3xkq3m1x8e6v5tn'] }),
    }),
  },
  { title: 'Error', description: 'An error' },
);

/** Returns response schemas for these statuses, all with the error body. */
export function errorResponses(...statuses: number[]) {
  return Object.fromEntries(statuses.map((status) => [status, ErrorBody]));
}

/** Describes the header for the API description and enables `registerIdempotency`, which validates it. */
export const IdempotencyHeader = Type.Object({
  'idempotency-key': Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: IDEMPOTENCY_KEY_LENGTH,
      description:
        'A key of your choice, such as the number of an order. A request that is repeated with the same key and body ' +
        'within 24 hours has no further effect: it returns the first response, with `Idempotent-Replayed: true`.',
    }),
  ),
});
