import { noDelivery, replayMany, replayOne, requireEndpoint } from '../../accounts/webhooks.ts';
import { findAttempts, findDelivery, listDeliveries } from '../../store/webhooks/deliveries.ts';
import { payloadOf } from '../../webhooks/payload.ts';
import { callerOf } from '../plugins/auth.ts';
import { listRoute } from '../list-route.ts';
import { route } from '../route.ts';
import { listOf } from '../schemas/lists.ts';
import {
  DeliveriesQuery,
  DeliveryBody,
  DeliveryParams,
  DeliverySummary,
  EndpointParams,
  ReplayBody,
  Replayed,
} from '../schemas/webhooks.ts';
import { intakeOf, type WebhookRoutesDeps } from './webhooks.ts';

const tags = ['Webhooks'];

export function list({ pool, secretKey }: WebhookRoutesDeps) {
  return listRoute(
    secretKey,
    'deliveries',
    {
      tags,
      operationId: 'listDeliveries',
      summary: 'List the deliveries of an endpoint',
      description:
        'One for each event that it wanted, newest first, for 30 days. Follow `next_cursor` until it is null.',
      params: EndpointParams,
      querystring: DeliveriesQuery,
      response: { 200: listOf('deliveries', DeliverySummary) },
    },
    async (request) => {
      const { status = null } = request.query;
      const { id } = await requireEndpoint(pool, callerOf(request).org_id, request.params.id);
      return {
        filters: { endpoint: id, status },
        find: (after, limit) => listDeliveries(pool, id, status, after, limit),
      };
    },
  );
}

export function get({ pool }: WebhookRoutesDeps) {
  return route(
    {
      tags,
      operationId: 'getDelivery',
      summary: 'Get a delivery',
      description: 'One delivery with its payload and the result of each attempt.',
      params: DeliveryParams,
      response: { 200: DeliveryBody },
    },
    async (request) => {
      const { id } = await requireEndpoint(pool, callerOf(request).org_id, request.params.id);
      const delivery = await findDelivery(pool, id, request.params.deliveryId);
      if (!delivery) throw noDelivery();
      const { event_id, type, status, created_at, next_attempt_at } = delivery;
      // Before the first attempt the payload is not stored yet.
      const payload = delivery.payload ?? payloadOf({ ...delivery, id: event_id }, delivery.email ?? undefined);
      return {
        id: delivery.id,
        event_id,
        type,
        status,
        created_at,
        next_attempt_at,
        payload: JSON.parse(payload) as unknown,
        attempts: await findAttempts(pool, delivery.id),
      };
    },
  );
}

export function replay(deps: WebhookRoutesDeps) {
  const intake = intakeOf(deps);
  return route(
    {
      tags,
      operationId: 'replayDelivery',
      summary: 'Replay a delivery',
      description: 'Sends the event again immediately, with the same id and body and a full set of attempts.',
      params: DeliveryParams,
      response: { 202: DeliverySummary },
    },
    async (request) => {
      const { id, deliveryId } = request.params;
      return replayOne(intake, callerOf(request).org_id, id, deliveryId);
    },
  );
}

export function replayPeriod(deps: WebhookRoutesDeps) {
  const intake = intakeOf(deps);
  return route(
    {
      tags,
      operationId: 'replayDeliveries',
      summary: 'Replay the deliveries of a period',
      description: 'Sends all of them again, or those of one status, oldest first.',
      params: EndpointParams,
      body: ReplayBody,
      response: { 202: Replayed },
    },
    async (request) => {
      const { since, until = null, status = null } = request.body;
      const period = { since, until, status };
      const replayed = await replayMany(intake, callerOf(request).org_id, request.params.id, period);
      return { replayed };
    },
  );
}
