import { Type } from 'typebox';
import { EVENT_TYPES, type EventType } from '../../domain/event-types.ts';
import {
  DELIVERY_STATUSES,
  type DeliveryStatus,
  ENDPOINT_DESCRIPTION_LENGTH,
  ENDPOINT_STATUSES,
  ENDPOINT_URL_LENGTH,
  type EndpointStatus,
} from '../../domain/webhooks.ts';
import { EventTypeName, nullable, optional, Timestamp } from './common.ts';

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
    description: 'Types that it wants; none means all, also those that come later',
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

export const CreateEndpointBody = Type.Object(
  { url: Type.String(url), ...more },
  { title: 'CreateWebhookRequest', additionalProperties: false, description: 'An endpoint' },
);

export const EditEndpointBody = Type.Object(
  {
    url: optional('string', url),
    ...more,
    status: optional<EndpointStatus>('string', {
      title: 'WebhookStatus',
      enum: [...ENDPOINT_STATUSES, null],
      description: STATUS,
      examples: ['enabled'],
    }),
  },
  {
    title: 'UpdateWebhookRequest',
    additionalProperties: false,
    description: 'What is to be changed; what is left out stays',
  },
);

export const EndpointParams = Type.Object({ id: Type.String({ examples: ['wh_01kajcc2m3r8v5x7y1b4d6f9gh'] }) });

const endpoint = {
  id: Type.String(),
  url: Type.String(),
  description: nullable(Type.String()),
  events: Type.Array(EventTypeName, { description: 'Types that it wants; none means all' }),
  status: Type.Enum([...ENDPOINT_STATUSES], { title: 'WebhookStatus', description: STATUS }),
  disabled_reason: nullable(Type.String(), 'Why it was disabled, when you did not do that yourself'),
  disabled_at: nullable(Timestamp, 'When it was disabled; null while it is enabled'),
  failing_since: nullable(Timestamp, 'When the first of the failures came that no success has followed'),
  created_at: Timestamp,
};

export const EndpointBody = Type.Object(endpoint, { title: 'Webhook' });

export const EndpointWithSecret = Type.Object(
  {
    ...endpoint,
    secret: Type.String({
      description: 'Signs what is posted (Standard Webhooks 1.0.0). Shown this once.',
      examples: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw7hYqCJb3p0E='],
    }),
  },
  { title: 'WebhookWithSecret' },
);

export const DeliveryParams = Type.Object({
  id: Type.String(),
  deliveryId: Type.String({ examples: ['whd_01kajcd5p97c1f2a3b4d5e6f70'] }),
});

export const DeliveryFilters = {
  status: Type.Optional(
    Type.Enum([...DELIVERY_STATUSES], {
      title: 'DeliveryStatus',
      description: 'Only deliveries that have this status now',
      examples: ['failed'],
    }),
  ),
};

const delivery = {
  id: Type.String(),
  event_id: Type.String({ description: 'The `webhook-id` of its requests' }),
  type: EventTypeName,
  status: Type.Enum([...DELIVERY_STATUSES], {
    title: 'DeliveryStatus',
    description: 'pending until a try is answered 2xx or all ten have failed',
  }),
  created_at: Timestamp,
  next_attempt_at: nullable(Timestamp, 'Of one that is pending'),
};

export const DeliverySummary = Type.Object(delivery, { title: 'DeliverySummary' });

export const DeliveryBody = Type.Object(
  {
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
  },
  { title: 'Delivery' },
);

const instant = { 'x-rule': 'instant', examples: ['2026-03-01T09:30:00Z'] };

export const ReplayBody = Type.Object(
  {
    since: Type.String({ ...instant, description: 'Events that happened at this instant or later' }),
    until: optional('string', { ...instant, description: 'And not after this one; now, if left out' }),
    status: optional<DeliveryStatus>('string', {
      title: 'DeliveryStatus',
      enum: [...DELIVERY_STATUSES, null],
      description: 'Only deliveries that have this status now; else all',
      examples: ['failed'],
    }),
  },
  { title: 'ReplayDeliveriesRequest', additionalProperties: false, description: 'Which deliveries' },
);

export const Replayed = Type.Object(
  { replayed: Type.Integer({ description: 'How many deliveries are sent again' }) },
  { title: 'ReplayedDeliveries' },
);
