import { Type } from 'typebox';
import { EVENT_TYPES, type EventType } from '../../domain/event-types.ts';
import {
  DELIVERY_STATUSES,
  ENDPOINT_DESCRIPTION_LENGTH,
  ENDPOINT_STATUSES,
  ENDPOINT_URL_LENGTH,
  MAX_SHOWN_ATTEMPTS,
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
  description: 'The URL to which events are posted: https, on the public internet',
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
    description: 'A description of your choice',
    examples: ['Order system'],
  }),
};

const STATUS = 'A disabled endpoint receives nothing; events that happen meanwhile are not sent later';

export const CreateEndpointBody = closedObject('CreateWebhookRequest', 'An endpoint', {
  url: Type.String(url),
  ...more,
});

export const EditEndpointBody = closedObject('UpdateWebhookRequest', 'The changes; absent fields are unchanged', {
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
  disabled_reason: nullable(Type.String(), 'Why Sendwright disabled it; null otherwise'),
  disabled_at: nullable(Timestamp, 'When it was disabled; null while it is enabled'),
  failing_since: nullable(Timestamp, 'The time of the first failure since the last success or change of the URL'),
  created_at: Timestamp,
};

export const EndpointBody = objectOf('Webhook', endpoint);

export const EndpointWithSecret = objectOf('WebhookWithSecret', {
  ...endpoint,
  secret: Type.String({
    description: 'Signs the deliveries (Standard Webhooks 1.0.0). Only this response contains it.',
    examples: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw7hYqCJb3p0E='],
  }),
});

export const DeliveryParams = Type.Object({
  id: Type.String(),
  deliveryId: Type.String({ examples: ['whd_01kajcd5p97c1f2a3b4d5e6f70'] }),
});

export const DeliveryFilters = {
  status: Type.Optional(enumOf(DELIVERY_STATUSES, 'DeliveryStatus', 'Only deliveries with this status', 'failed')),
};

const delivery = {
  id: Type.String(),
  event_id: Type.String({ description: 'The `webhook-id` of the requests' }),
  type: EventTypeName,
  status: enumOf(
    DELIVERY_STATUSES,
    'DeliveryStatus',
    'pending until an attempt gets a 2xx response (succeeded), or all ten attempts have failed or one got 410 (failed)',
  ),
  created_at: Timestamp,
  next_attempt_at: nullable(Timestamp, 'The time of the next attempt of a pending delivery'),
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
    { description: 'The body of the request' },
  ),
  attempts: Type.Array(
    Type.Object({
      at: Timestamp,
      status_code: nullable(Type.Integer(), 'Null without a response'),
      duration_ms: Type.Integer(),
      response: nullable(Type.String(), 'The first 4 kB of the response'),
      error: nullable(Type.String(), 'Why there was no response, or why it does not count as success'),
    }),
    { description: `The latest ${MAX_SHOWN_ATTEMPTS} attempts, oldest first` },
  ),
});

const instant = { 'x-rule': 'instant', examples: ['2026-03-01T09:30:00Z'] };

export const ReplayBody = closedObject('ReplayDeliveriesRequest', 'The deliveries to send again', {
  since: Type.String({ ...instant, description: 'Events that happened at this instant or later' }),
  until: optional('string', {
    ...instant,
    description: 'Events that happened at this instant or earlier; now by default',
  }),
  status: optionalEnum(
    DELIVERY_STATUSES,
    'DeliveryStatus',
    'Only deliveries with this status; all by default',
    'failed',
  ),
});

export const Replayed = objectOf('ReplayedDeliveries', {
  replayed: Type.Integer({ description: 'The number of deliveries that are sent again' }),
});
