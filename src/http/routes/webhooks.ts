import { Type } from 'typebox';
import {
  createEndpoint,
  editEndpoint,
  removeEndpoint,
  requireEndpoint,
  rotateEndpoint,
  testEndpoint,
} from '../../accounts/webhooks.ts';
import { reportEndpoint } from '../../intake/account-notices.ts';
import { listEndpoints } from '../../store/webhooks/endpoints.ts';
import { listRoute } from '../list-route.ts';
import { route } from '../route.ts';
import {
  CreateEndpointBody,
  DeliverySummary,
  EditEndpointBody,
  EndpointBody,
  EndpointParams,
  EndpointWithSecret,
} from '../schemas/webhooks.ts';

export const create = route('createWebhook', 'Create an endpoint', {
  description:
    'Events that happen from now on are posted to the endpoint, signed as Standard Webhooks 1.0.0 specifies. Only this ' +
    'response contains the secret.',
  body: CreateEndpointBody,
  response: { 201: EndpointWithSecret },
  handler: async (deps, { orgId, caller, body: { url, events, description } }) => {
    const request = { url, events: events ?? [], description: description ?? null };
    const endpoint = await createEndpoint(deps.webhooks, orgId, request);
    await reportEndpoint(deps, orgId, endpoint, `The API key ${caller?.id}`);
    return endpoint;
  },
});

export const list = listRoute('listWebhooks', 'List endpoints', {
  name: 'webhooks',
  item: EndpointBody,
  description: 'Endpoints, newest first. Follow `next_cursor` until it is null.',
  read: ({ pool }, { orgId }, after, limit) => listEndpoints(pool, orgId, after, limit),
});

export const get = route('getWebhook', 'Get an endpoint', {
  description: 'One endpoint with its state; its secret is not shown again.',
  params: EndpointParams,
  response: { 200: EndpointBody },
  handler: ({ pool }, { orgId, params }) => requireEndpoint(pool, orgId, params.id),
});

export const edit = route('updateWebhook', 'Change an endpoint', {
  description:
    'Pending deliveries go to the new URL. Events that happen while the endpoint is disabled are not sent later.',
  params: EndpointParams,
  body: EditEndpointBody,
  response: { 200: EndpointBody },
  handler: async (deps, { orgId, caller, params, body }) => {
    const endpoint = await editEndpoint(deps.webhooks, orgId, params.id, body);
    if (body.url != null) await reportEndpoint(deps, orgId, endpoint, `The API key ${caller?.id}`);
    return endpoint;
  },
});

export const remove = route('deleteWebhook', 'Delete an endpoint', {
  description: 'Events are no longer sent to this endpoint, and its deliveries can no longer be read.',
  params: EndpointParams,
  response: { 204: Type.Null() },
  handler: ({ webhooks }, { orgId, params }) => removeEndpoint(webhooks, orgId, params.id),
});

export const rotate = route('rotateWebhookSecret', 'Rotate the secret of an endpoint', {
  description: 'Only this response contains the new secret. For 24 hours, deliveries are also signed with the old one.',
  params: EndpointParams,
  response: { 200: EndpointWithSecret },
  handler: ({ webhooks }, { orgId, params }) => rotateEndpoint(webhooks, orgId, params.id),
});

export const test = route('testWebhook', 'Test an endpoint', {
  description: 'Sends an event of the type `webhook.test`, even if the endpoint is not subscribed to it.',
  params: EndpointParams,
  response: { 202: DeliverySummary },
  handler: ({ webhooks }, { orgId, params }) => testEndpoint(webhooks, orgId, params.id),
});
