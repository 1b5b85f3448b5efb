import { Type } from 'typebox';
import type { IntakeDeps } from '../../intake/emails.ts';
import {
  createEndpoint,
  editEndpoint,
  makeWebhookIntake,
  removeEndpoint,
  requireEndpoint,
  rotateEndpoint,
  testEndpoint,
  type WebhookIntakeDeps,
} from '../../accounts/webhooks.ts';
import { withinLimit } from '../../accounts/organization-limits.ts';
import { listEndpoints } from '../../store/webhooks/endpoints.ts';
import { callerOf } from '../plugins/auth.ts';
import { listRoute } from '../list-route.ts';
import { route } from '../route.ts';
import { listOf } from '../schemas/lists.ts';
import {
  CreateEndpointBody,
  DeliverySummary,
  EditEndpointBody,
  EndpointBody,
  EndpointParams,
  EndpointsQuery,
  EndpointWithSecret,
} from '../schemas/webhooks.ts';
import type { SecretKeys } from '../../lib/secret-key.ts';

export interface WebhookRoutesDeps extends IntakeDeps {
  readonly secretKey: SecretKeys;
  /** Private ranges that endpoint URLs may resolve to. */
  readonly webhookAllowCidrs: readonly string[];
}

const tags = ['Webhooks'];

export function intakeOf(deps: WebhookRoutesDeps): WebhookIntakeDeps {
  return makeWebhookIntake(deps.pool, deps.wakeRelay, deps.secretKey, deps.webhookAllowCidrs);
}

export function create(deps: WebhookRoutesDeps) {
  const intake = intakeOf(deps);
  return route(
    {
      tags,
      operationId: 'createWebhook',
      summary: 'Create an endpoint',
      description:
        'Events that happen from now on are posted there, signed as Standard Webhooks 1.0.0 says. Its secret is in this ' +
        'answer alone.',
      body: CreateEndpointBody,
      response: { 201: EndpointWithSecret },
    },
    async (request) => {
      const { url, events, description } = request.body;
      const endpointRequest = { url, events: events ?? [], description: description ?? null };
      const orgId = callerOf(request).org_id;
      return withinLimit(deps.pool, deps.limits.organization, 'endpoints', orgId, (client) =>
        createEndpoint({ ...intake, pool: client }, orgId, endpointRequest),
      );
    },
  );
}

export function list({ pool, secretKey }: WebhookRoutesDeps) {
  return listRoute(
    secretKey,
    'webhooks',
    {
      tags,
      operationId: 'listWebhooks',
      summary: 'List endpoints',
      description: 'Endpoints, newest first. Follow `next_cursor` until it is null.',
      querystring: EndpointsQuery,
      response: { 200: listOf('webhooks', EndpointBody) },
    },
    (request) => ({ find: (after, limit) => listEndpoints(pool, callerOf(request).org_id, after, limit) }),
  );
}

export function get({ pool }: WebhookRoutesDeps) {
  return route(
    {
      tags,
      operationId: 'getWebhook',
      summary: 'Get an endpoint',
      description: 'One endpoint with its state; its secret is not shown again.',
      params: EndpointParams,
      response: { 200: EndpointBody },
    },
    (request) => requireEndpoint(pool, callerOf(request).org_id, request.params.id),
  );
}

export function edit(deps: WebhookRoutesDeps) {
  const intake = intakeOf(deps);
  return route(
    {
      tags,
      operationId: 'updateWebhook',
      summary: 'Change an endpoint',
      description:
        'Pending deliveries go to the new URL. Events that happen while the endpoint is disabled are not sent later.',
      params: EndpointParams,
      body: EditEndpointBody,
      response: { 200: EndpointBody },
    },
    (request) => {
      const { url, events, description, status } = request.body;
      return editEndpoint(intake, callerOf(request).org_id, request.params.id, {
        url: url ?? undefined,
        events: events ?? undefined,
        description: description ?? undefined,
        status: status ?? undefined,
      });
    },
  );
}

export function remove(deps: WebhookRoutesDeps) {
  const intake = intakeOf(deps);
  return route(
    {
      tags,
      operationId: 'deleteWebhook',
      summary: 'Delete an endpoint',
      description: 'Events are no longer sent to this endpoint, and its deliveries can no longer be read.',
      params: EndpointParams,
      response: { 204: Type.Null() },
    },
    async (request) => {
      await removeEndpoint(intake, callerOf(request).org_id, request.params.id);
    },
  );
}

export function rotate(deps: WebhookRoutesDeps) {
  const intake = intakeOf(deps);
  return route(
    {
      tags,
      operationId: 'rotateWebhookSecret',
      summary: 'Rotate the secret of an endpoint',
      description: 'The new secret is in this answer alone. For 24 hours the old one signs too.',
      params: EndpointParams,
      response: { 200: EndpointWithSecret },
    },
    (request) => rotateEndpoint(intake, callerOf(request).org_id, request.params.id),
  );
}

export function test(deps: WebhookRoutesDeps) {
  const intake = intakeOf(deps);
  return route(
    {
      tags,
      operationId: 'testWebhook',
      summary: 'Test an endpoint',
      description: 'Sends an event of the type `webhook.test`, even if the endpoint is not subscribed to it.',
      params: EndpointParams,
      response: { 202: DeliverySummary },
    },
    (request) => testEndpoint(intake, callerOf(request).org_id, request.params.id),
  );
}
