import { type TProperties, type TSchema, Type } from 'typebox';
import { ERROR_CODES } from '../../domain/errors.ts';
import { EVENT_TYPES, type EventType } from '../../domain/event-types.ts';
import { IDEMPOTENCY_KEY_LENGTH } from '../../domain/limits.ts';

/** A field of a request that may be left out or null. */
export function optional<T = string>(type: string | readonly string[], schema: Record<string, unknown>) {
  return Type.Optional(Type.Unsafe<T | null>({ type: [type, 'null'].flat(), ...schema }));
}

/** A field of a response that may be null. */
export function nullable<T extends TSchema>(schema: T, description?: string) {
  return Type.Union([schema, Type.Null()], description === undefined ? {} : { description });
}

/** An object that the API description names. */
export function objectOf<T extends TProperties>(title: string, properties: T) {
  return Type.Object(properties, { title });
}

/** An object of a request that the API description names. Unknown fields are refused. */
export function closedObject<T extends TProperties>(title: string, description: string | null, properties: T) {
  return ruledObject(null, title, description, properties);
}

/** A closed object with a rule about several of its fields (`domain/rules.ts`). */
export function ruledObject<T extends TProperties>(
  rule: string | null,
  title: string,
  description: string | null,
  properties: T,
) {
  const more = { ...(rule !== null && { 'x-rule': rule }), ...(description !== null && { description }) };
  return Type.Object(properties, { title, additionalProperties: false, ...more });
}

/** One of some values, which the API description names. */
export function enumOf<const T extends string>(values: readonly T[], title: string, description = '', example?: T) {
  const examples = example === undefined ? {} : { examples: [example] };
  return Type.Enum([...values], { title, ...(description !== '' && { description }), ...examples });
}

/** An enum of a request that may be left out or null. */
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

/** The event types with a prefix, such as `email`. Messages to us have another payload. */
export function eventTypes(prefix: string): EventType[] {
  return EVENT_TYPES.filter((type) => type.startsWith(`${prefix}.`) && !type.endsWith('.received'));
}

/** @param more fields that only entries of this prefix have */
export function timelineEntry(prefix: string, title: string, more: TProperties = {}) {
  return objectOf(`${title}TimelineEntry`, {
    type: enumOf(eventTypes(prefix), `${title}EventType`),
    created_at: Timestamp,
    ...more,
  });
}

/** The body of every error response. */
export const ErrorBody = Type.Object(
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
      request_id: Type.String({ examples: ['req_01kajc8wz6h3xkq3m1x8e6v5tn'] }),
    }),
  },
  { title: 'Error', description: 'An error' },
);

/** Response schemas for these statuses, all with the error body. */
export function errorResponses(...statuses: number[]) {
  return Object.fromEntries(statuses.map((status) => [status, ErrorBody]));
}

/** The header is only described here: `idempotency.ts` checks it. */
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
