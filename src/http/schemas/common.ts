import { type TSchema, Type } from 'typebox';
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

export const Timestamp = Type.String({
  format: 'date-time',
  description: 'UTC with milliseconds',
  examples: ['2026-03-01T09:30:00.000Z'],
});

export const EventTypeName = Type.Enum([...EVENT_TYPES], { title: 'EventType' });

/** Events of messages to us; their payload is another one. */
type ReceivedType = Extract<EventType, `${string}.received`>;

/** A named enum of the event types with a prefix, such as `email`, that a message, domain or endpoint can have. */
export function eventTypes<const Prefix extends string>(prefix: Prefix, title: string) {
  type Prefixed = Exclude<Extract<EventType, `${Prefix}.${string}`>, ReceivedType>;
  const hasPrefix = (type: EventType): type is Prefixed => type.startsWith(`${prefix}.`) && !type.endsWith('.received');
  return Type.Enum(EVENT_TYPES.filter(hasPrefix), { title });
}

/** An entry of a timeline. */
export function timelineEntry(prefix: string, title: string) {
  return Type.Object(
    { type: eventTypes(prefix, `${title}EventType`), created_at: Timestamp },
    { title: `${title}TimelineEntry` },
  );
}

/** The body of every error response. */
export const ErrorBody = Type.Object(
  {
    error: Type.Object({
      code: Type.Enum([...ERROR_CODES], {
        title: 'ErrorCode',
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
