import { replayMany, replayOne, requireDelivery, requireEndpoint } from '../../accounts/webhooks.ts';
import { listDeliveries } from '../../store/webhooks/deliveries.ts';
import { listRoute } from '../list-route.ts';
import { route } from '../route.ts';
import {
  DeliveryBody,
  DeliveryFilters,
  DeliveryParams,
  DeliverySummary,
  EndpointParams,
  ReplayBody,
  Replayed,
} from '../schemas/webhooks.ts';

export const list = listRoute('listDeliveries', 'List the deliveries of an endpoint', {
  name: 'deliveries',
  item: DeliverySummary,
  description: 'One for each event of its types, newest first, for 30 days. Follow `next_cursor` until it is null.',
  params: EndpointParams,
  filters: DeliveryFilters,
  filtersOf: async ({ orgId, params, query: { status = null } }, { pool }) => {
    const { id } = await requireEndpoint(pool, orgId, params.id);
    return { endpoint: id, status };
  },
  read: ({ pool }, _request, after, limit, { endpoint, status }) =>
    listDeliveries(pool, endpoint, status, after, limit),
});

export const get = route('getDelivery', 'Get a delivery', {
  description: 'One delivery with its payload and the results of its latest attempts.',
  params: DeliveryParams,
  response: { 200: DeliveryBody },
  handler: async ({ pool }, { orgId, params }) => {
    const { delivery, payload, attempts } = await requireDelivery(pool, orgId, params.id, params.deliveryId);
    const { id, event_id, type, status, created_at, next_attempt_at } = delivery;
    const items = attempts.map(({ at, status_code, duration_ms, response, error }) => ({
      at,
      status_code,
      duration_ms,
      response,
      error,
    }));
    return { id, event_id, type, status, created_at, next_attempt_at, payload, attempts: items };
  },
});

export const replay = route('replayDelivery', 'Replay a delivery', {
  description: 'Sends the event again immediately, with the same id and body and a full set of attempts.',
  params: DeliveryParams,
  response: { 202: DeliverySummary },
  handler: ({ webhooks }, { orgId, params }) => replayOne(webhooks, orgId, params.id, params.deliveryId),
});

export const replayPeriod = route('replayDeliveries', 'Replay the deliveries of a period', {
  description: 'Sends all deliveries of the period again, or those of one status, oldest first.',
  params: EndpointParams,
  body: ReplayBody,
  response: { 202: Replayed },
  handler: async ({ webhooks }, { orgId, params, body: { since, until = null, status = null } }) => ({
    replayed: await replayMany(webhooks, orgId, params.id, { since, until, status }),
  }),
});
