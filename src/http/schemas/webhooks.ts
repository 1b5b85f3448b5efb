import { Type } from 'typebox';
import { EVENT_TYPES, type EventType } from '../../domain/event-types.ts';
import {
  DELIVERY_STATUSES,
  ENDPOINT_DESCRIPTION_LENGTH,
  ENDPOINT_STATUSES,
  ENDPOINT_URL_LENGTH,
} from '../../domain/webhooks.ts';
import {
  closedObject,
  enumOf,
  EventTypeName,
  nullable,
  objectOf,
  optional,
  optionalEnum,
  Timestamp,
} from './common.ts';

const url = {
  minLength: 1,
  maxLength: ENDPOINT_URL_LENGTH,
  description: 'Where events are posted to: https, on the public internet',
  examples: ['https://example.com/webhooks/sendwright'],
};

const more = {
  events: optional<EventType[]>('array', {
    items: { type: 'string', title: 'EventType', enum: [...EVENT_TYPES] },
    maxItems: 100,
    description: 'Event types that it subscribes to; none means all, also types that are added later',
    examples: [['email.delivered', 'email.bounced']],
  }),
  description: optional('string', {
    maxLength: ENDPOINT_DESCRIPTION_LENGTH,
    'x-rule': 'one-line',
    description: 'Your own words',
    examples: ['Order system'],
  }),
};

const STATUS = 'An endpoint that is disabled gets nothing; what happens meanwhile is not sent later';

export const CreateEndpointBody = closedObject('CreateWebhookRequest', 'An endpoint', {
  url: Type.String(url),
  ...more,
});

export const EditEndpointBody = closedObject('UpdateWebhookRequest', 'What is to be changed; what is left out stays', {
  url: optional('string', url),
  ...more,
  status: optionalEnum(ENDPOINT_STATUSES, 'WebhookStatus', STATUS, 'enabled'),
});

export const EndpointParams = Type.Object({ id: Type.String({ examples: ['wh_01kajcc2m3r8v5x7y1b4d6f9gh'] }) });

const endpoint = {
  id: Type.String(),
  url: Type.String(),
  description: nullable(Type.String()),
  events: Type.Array(EventTypeName, { description: 'Event types that it subscribes to; none means all' }),
  status: enumOf(ENDPOINT_STATUSES, 'WebhookStatus', STATUS),
  disabled_reason: nullable(Type.String(), 'Why it was disabled, when you did not do that yourself'),
  disabled_at: nullable(Timestamp, 'When it was disabled; null while it is enabled'),
  failing_since: nullable(Timestamp, 'When the first of the failures came that no success has followed'),
  created_at: Timestamp,
};

export const EndpointBody = objectOf('Webhook', endpoint);

export const EndpointWithSecret = objectOf('WebhookWithSecret', {
  ...endpoint,
  secret: Type.String({
    description: 'Signs what is posted (Standard Webhooks 1.0.0). Shown this once.',
    examples: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw7hYqCJb3p0E='],
  }),
});

export const DeliveryParams = Type.Object({
  id: Type.String(),
  deliveryId: Type.String({ examples: ['whd_01kajcd5p97c1f2a3b4d5e6f70'] }),
});

export const DeliveryFilters = {
  status: Type.Optional(
    enumOf(DELIVERY_STATUSES, 'DeliveryStatus', 'Only deliveries that have this status now', 'failed'),
  ),
};

const delivery = {
  id: Type.String(),
  event_id: Type.String({ description: 'The `webhook-id` of its requests' }),
  type: EventTypeName,
  status: enumOf(DELIVERY_STATUSES, 'DeliveryStatus', 'pending until a try is answered 2xx or all ten have failed'),
  created_at: Timestamp,
  next_attempt_at: nullable(Timestamp, 'Of one that is pending'),
};

export const DeliverySummary = objectOf('DeliverySummary', delivery);

export const DeliveryBody = objectOf('Delivery', {
  ...delivery,
  payload: Type.Object(
    {
      id: Type.String(),
      type: Type.String(),
      created_at: Timestamp,
      data: Type.Object({}, { additionalProperties: true }),
    },
    { description: 'What is posted' },
  ),
  attempts: Type.Array(
    Type.Object({
      at: Timestamp,
      status_code: nullable(Type.Integer(), 'Null when no answer came'),
      duration_ms: Type.Integer(),
      response: nullable(Type.String(), 'The first 4 kB of the answer'),
      error: nullable(Type.String(), 'Why there was no answer, or why it does not count'),
    }),
    { description: 'Every try, oldest first' },
  ),
});

const instant = { 'x-rule': 'instant', examples: ['2026-03-01T09:30:00Z'] };

export const ReplayBody = closedObject('ReplayDeliveriesRequest', 'Which deliveries', {
  since: Type.String({ ...instant, description: 'Events that happened at this instant or later' }),
  until: optional('string', { ...instant, description: 'And not after this one; now, if left out' }),
  status: optionalEnum(
    DELIVERY_STATUSES,
    'DeliveryStatus',
    'Only deliveries that have this status now; else all',
    'failed',
  ),
});

export const Replayed = objectOf('ReplayedDeliveries', {
  replayed: Type.Integer({ description: 'How many deliveries are sent again' }),
});
