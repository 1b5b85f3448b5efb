import { maxHeaderSize } from 'node:http';
import swagger from '@fastify/swagger';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import { ServiceError } from '../domain/errors.ts';
import { newId } from '../domain/ids.ts';
import { isAllowed, type Ranges } from '../lib/ip-ranges.ts';
import type { IntakeDeps } from '../intake/emails.ts';
import type { NetworkLimits } from '../intake/network-limits.ts';
import type { KeyCache } from '../store/accounts/key-cache.ts';
import { auditChange, recordCreatedId } from './plugins/audit.ts';
import { authenticate, authorize, type Scope } from './plugins/auth.ts';
import { limitBodiesInFlight } from './plugins/bodies-in-flight.ts';
import { closeAfterLastResponse } from './plugins/closing.ts';
import { type CurrentDescription, makeCurrentDescription } from './docs/current-examples.ts';
import { serveDocs } from './docs/docs.ts';
import { respondToBrokenRequest, sendError, tooLarge } from './plugins/errors.ts';
import { registerIdempotency } from './plugins/idempotency.ts';
import { readJson, refuseBodies, refuseCompression } from './plugins/json.ts';
import { methodsOf } from './plugins/methods.ts';
import { errorStatuses } from './docs/errors.ts';
import { openapi } from './docs/openapi.ts';
import { serveHtml } from './docs/pages.ts';
import { limitRequests, reportRateLimits } from './plugins/rate-limit.ts';
import { keepRawBodies } from './plugins/raw-bodies.ts';
import { type Guard, type Route, route, type RouteRow } from './route.ts';
import * as attachments from './routes/attachments.ts';
import * as batches from './routes/batches.ts';
import * as callbacks from './routes/callbacks.ts';
import * as chatCallbacks from './routes/chat-callbacks.ts';
import * as chatMedia from './routes/chat-media.ts';
import * as chatNumbers from './routes/chat-numbers.ts';
import * as chatapp from './routes/chatapp.ts';
import * as content from './routes/content.ts';
import * as deliveries from './routes/deliveries.ts';
import * as domains from './routes/domains.ts';
import * as emails from './routes/emails.ts';
import * as erasures from './routes/erasures.ts';
import * as health from './routes/health.ts';
import * as keys from './routes/keys.ts';
import * as lists from './routes/lists.ts';
import * as suppressions from './routes/suppressions.ts';
import * as unsubscribe from './routes/unsubscribe.ts';
import * as webhooks from './routes/webhooks.ts';
import { errorResponses } from './schemas/common.ts';
import { answered } from '../telemetry/topics.ts';
import { traced } from './plugins/trace.ts';
import { pathOf, normalizeTarget } from './plugins/target.ts';
import { makeValidatorCompiler } from './plugins/validation.ts';
import type { SecretKeys } from '../lib/secret-key.ts';

/** A slow upload of the largest body fits: 43 MB at 1.2 Mbit/s. */
const REQUEST_TIMEOUT_MS = 300_000;

export interface HttpDeps
  extends
    IntakeDeps,
    attachments.AttachmentRoutesDeps,
    webhooks.WebhookRoutesDeps,
    chatMedia.ChatMediaDeps,
    domains.DomainRoutesDeps,
    chatNumbers.NumberRoutesDeps {
  readonly log: FastifyBaseLogger;
  /** The setting `SECRET_KEY`. It signs cursors and links that callers send back. */
  readonly secretKey: SecretKeys;
  readonly maxBodyBytes: number;
  /** Sender domain in the examples of the API description; undefined means `example.com`. */
  readonly docsSenderDomain: string | undefined;
  readonly keys: KeyCache;
  readonly networks: NetworkLimits;
  /** Proxies whose X-Forwarded-For header is trusted. Without any, the caller is the network peer. */
  readonly trustedProxies: Ranges;
  /** Credentials that Postmark must present. Without them every callback is refused. */
  readonly postmarkCallbacks: callbacks.PostmarkCallbacks;
  readonly chatCallbacks: chatCallbacks.ChatCallbackSecrets;
  readonly metrics: health.Metrics;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    scope?: Scope;
    guard?: Guard | undefined;
    networkLimit?: Route['networkLimit'];
  }
}

/** Lists every route of the API: method, path, required scope and handler. */
export function routeTable(deps: HttpDeps, describeApi: CurrentDescription): RouteRow[] {
  return [
    ['POST', '/v1/emails', 'send', emails.sendEmail(deps)],
    ['GET', '/v1/emails', 'read', lists.emails(deps)],
    ['GET', '/v1/emails/tags', 'read', lists.tags(deps)],
    ['POST', '/v1/emails/batch', 'send', batches.sendBatch(deps)],
    ['GET', '/v1/emails/batch', 'read', batches.listOfBatches(deps)],
    ['GET', '/v1/emails/batch/:id', 'read', batches.getBatch(deps)],
    ['POST', '/v1/emails/batch/:id/cancel', 'send', batches.cancelBatchMembers(deps)],
    ['GET', '/v1/emails/:id', 'read', emails.getEmail(deps)],
    ['PATCH', '/v1/emails/:id', 'send', emails.reschedule(deps)],
    ['POST', '/v1/emails/:id/cancel', 'send', emails.cancel(deps)],
    ['GET', '/v1/emails/:id/content', 'read', content.getContent(deps)],
    ['DELETE', '/v1/emails/:id/content', 'manage', content.deleteContent(deps)],
    ['GET', '/v1/emails/:id/attachments', 'read', attachments.listAttachments(deps)],
    ['GET', '/v1/emails/:id/attachments/:attachmentId', 'read', attachments.getAttachment(deps)],
    ['GET', '/v1/emails/:id/attachments/:attachmentId/download', 'public', attachments.downloadAttachment(deps)],

    ['POST', '/v1/chatapp', 'chat', chatapp.send(deps)],
    ['GET', '/v1/chatapp', 'read', chatapp.list(deps)],
    ['POST', '/v1/chatapp/numbers', 'manage', chatNumbers.connect(deps)],
    ['GET', '/v1/chatapp/numbers', 'read', chatNumbers.list(deps)],
    ['GET', '/v1/chatapp/numbers/:id', 'read', chatNumbers.get(deps)],
    ['DELETE', '/v1/chatapp/numbers/:id', 'manage', chatNumbers.remove(deps)],
    ['GET', '/v1/chatapp/received/:id/download', 'public', chatMedia.download(deps)],
    ['GET', '/v1/chatapp/:id', 'read', chatapp.get(deps)],

    ['POST', '/v1/domains', 'manage', domains.add(deps)],
    ['GET', '/v1/domains', 'read', domains.list(deps)],
    ['GET', '/v1/domains/:id', 'read', domains.get(deps)],
    ['POST', '/v1/domains/:id/verify', 'manage-bounded', domains.verify(deps)],
    ['DELETE', '/v1/domains/:id', 'manage-bounded', domains.remove(deps)],

    ['POST', '/v1/suppressions', 'manage', suppressions.addSuppressions(deps)],
    ['GET', '/v1/suppressions', 'read', suppressions.listOfSuppressions(deps)],
    ['GET', '/v1/suppressions/:idOrEmail', 'read', suppressions.getSuppression(deps)],
    ['DELETE', '/v1/suppressions/:idOrEmail', 'manage', suppressions.removeSuppression(deps)],

    ['POST', '/v1/erasures', 'manage', erasures.erase(deps)],

    ['POST', '/v1/webhooks', 'manage', webhooks.create(deps)],
    ['GET', '/v1/webhooks', 'read', webhooks.list(deps)],
    ['GET', '/v1/webhooks/:id', 'read', webhooks.get(deps)],
    ['PATCH', '/v1/webhooks/:id', 'manage', webhooks.edit(deps)],
    ['DELETE', '/v1/webhooks/:id', 'manage', webhooks.remove(deps)],
    ['POST', '/v1/webhooks/:id/rotate-secret', 'manage', webhooks.rotate(deps)],
    ['POST', '/v1/webhooks/:id/test', 'manage', webhooks.test(deps)],
    ['POST', '/v1/webhooks/:id/replay', 'manage', deliveries.replayPeriod(deps)],
    ['GET', '/v1/webhooks/:id/deliveries', 'read', deliveries.list(deps)],
    ['GET', '/v1/webhooks/:id/deliveries/:deliveryId', 'read', deliveries.get(deps)],
    ['POST', '/v1/webhooks/:id/deliveries/:deliveryId/replay', 'manage', deliveries.replay(deps)],

    ['POST', '/v1/keys', 'manage-bounded', keys.issue(deps)],
    ['GET', '/v1/keys', 'manage-bounded', keys.list(deps)],
    ['GET', '/v1/keys/:id', 'manage-bounded', keys.get(deps)],
    ['DELETE', '/v1/keys/:id', 'manage-bounded', keys.revoke(deps)],

    ['GET', '/unsubscribe/:token', 'public', unsubscribe.askToUnsubscribe(deps)],
    ['POST', '/unsubscribe/:token', 'public', unsubscribe.unsubscribeNow(deps)],

    ['POST', '/callbacks/postmark', 'public', callbacks.postmark(deps, deps.postmarkCallbacks)],
    ['POST', '/callbacks/twilio', 'public', chatCallbacks.twilio(deps)],
    ['POST', '/callbacks/twilio/inbound', 'public', chatCallbacks.twilioInbound(deps)],
    ['GET', '/callbacks/meta', 'public', chatCallbacks.metaChallenge(deps)],
    ['POST', '/callbacks/meta', 'public', chatCallbacks.meta(deps)],

    ['GET', '/', 'public', redirectToDashboard],
    ['GET', '/healthz', 'public', health.healthz],
    ['GET', '/readyz', 'public', health.readyz(deps.pool)],
    ['GET', '/metrics', 'public', health.metrics(deps.metrics)],
    ['GET', '/openapi.json', 'public', apiDescription(describeApi)],
  ];
}

/** Sets HTTP Strict Transport Security (RFC 6797). Browsers ignore it on plain http. */
function requireHttps(app: FastifyInstance): void {
  app.addHook('onSend', async (_request, reply) => {
    reply.header('strict-transport-security', 'max-age=31536000');
  });
}

/** Redirects browsers that open the address of the service to its dashboard. */
const redirectToDashboard = route({ tags: ['Health'], summary: 'The dashboard', hide: true }, async (_request, reply) =>
  reply.redirect('/dashboard', 303),
);

function apiDescription(describeApi: CurrentDescription): Route {
  return route({ tags: ['Health'], summary: 'This description', hide: true }, async (_request, reply) => {
    reply.type('application/json; charset=utf-8');
    return describeApi();
  });
}

/** Composes the HTTP API. It does not listen yet. */
export async function makeApp(deps: HttpDeps): Promise<FastifyInstance> {
  const app = Fastify({
    loggerInstance: deps.log,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: deps.maxBodyBytes,
    genReqId: () => newId('req', Date.now()),
    requestIdHeader: false,
    return503OnClosing: false,
    requestTimeout: REQUEST_TIMEOUT_MS,
    trustProxy: deps.trustedProxies.length > 0 && ((address) => isAllowed(address, deps.trustedProxies)),
    rewriteUrl: (request) => normalizeTarget(request.url as string),
    // A longer id does not exist; the request line is limited anyway.
    routerOptions: { maxParamLength: maxHeaderSize },
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id);
      void sendError(error, request, reply);
    },
    clientErrorHandler: respondToBrokenRequest,
  });
  app.decorateRequest('caller', null);
  app.decorateRequest('createdId', null);
  app.setValidatorCompiler(makeValidatorCompiler());
  app.setErrorHandler(sendError);
  readJson(app, deps.maxBodyBytes);
  registerIdempotency(app, deps.pool);
  refuseBodies(app);
  closeAfterLastResponse(app);
  reportRateLimits(app, deps.limits);
  if (deps.publicUrl?.startsWith('https:')) requireHttps(app);
  await app.register(swagger, openapi(deps.publicUrl));

  const describeApi = makeCurrentDescription(() => app.swagger(), deps.docsSenderDomain);
  const table = routeTable(deps, describeApi);
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
    await admit(deps, request, reply);
    if (request.is404) throw noRoute(table, request, reply);
  });
  limitBodiesInFlight(app, deps.maxBodyBytes);
  app.addHook('onResponse', async (request, reply) => {
    const { method, routeOptions, caller } = request;
    const { statusCode: status, elapsedTime } = reply;
    if (status === 401 && routeOptions.config.scope === 'public') deps.networks.countFailure(request.ip);
    answered.publish({ method, route: routeOptions.url ?? 'none', status, seconds: elapsedTime / 1_000 });
    const line = { method, route: routeOptions.url, status, ms: Math.round(elapsedTime) };
    const createdId = request.createdId ?? undefined;
    request.log.info({ ...line, org: caller?.org_id, key: caller?.id, made: createdId }, 'request');
  });
  for (const row of table) if (!row[3].isPage && !row[3].isRaw) serve(app, deps, row);
  await app.register(async (pages) => {
    serveHtml(pages);
    for (const row of table) if (row[3].isPage) serve(pages, deps, row);
  });
  await app.register(async (callbacks) => {
    keepRawBodies(callbacks);
    for (const row of table) if (row[3].isRaw) serve(callbacks, deps, row);
  });
  await serveDocs(app, describeApi);
  return app;
}

function serve(app: FastifyInstance, deps: HttpDeps, row: RouteRow): void {
  const [method, url, scope, route] = row;
  const { schema, handler, guard, networkLimit, attachValidation = false, bodyLimit } = route;
  const limit = bodyLimit === undefined ? {} : { bodyLimit };
  const handle = deps.tracer && scope !== 'public' ? traced(deps.tracer, handler) : handler;
  const [success = 200] = Object.keys(schema.response ?? {}).map(Number);
  const errors = scope === 'public' ? {} : errorResponses(...errorStatuses(row));
  // The audit log records who changed the account.
  const isAudited = scope.startsWith('manage') && method !== 'GET';
  const hooks = {
    ...(scope !== 'public' && method !== 'GET' && { preSerialization: recordCreatedId }),
    ...(isAudited && { onSend: auditChange(deps.pool) }),
  };
  const config = { scope, guard, ...(networkLimit && { networkLimit }) };
  app.route({
    method,
    url,
    schema: { ...schema, response: { ...schema.response, ...errors } },
    handler: (request, reply) => handle(request, reply.code(success)),
    attachValidation,
    ...limit,
    ...hooks,
    config,
  });
}

/** Authenticates, authorizes, rate-limits and checks Content-Length before the body is read. */
async function admit(deps: HttpDeps, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const scope = request.is404 ? unknownScope(request) : (request.routeOptions.config.scope ?? 'read');
  if (scope !== 'public') {
    request.caller = await authenticate(deps.keys, deps.networks, request);
    if (!request.is404) authorize(request.caller, scope);
    limitRequests(deps.limits, request.caller, reply);
  }
  if (scope === 'public') admitNetwork(deps.networks, request);
  if (Number(request.headers['content-length'] ?? 0) > request.routeOptions.bodyLimit) {
    throw tooLarge(request.routeOptions.bodyLimit);
  }
  if (scope !== 'public' && !request.is404) refuseCompression(request, reply);
}

/** Refuses a network that has used up its limit, unless the guard of the route accepts the caller. */
function admitNetwork(networks: NetworkLimits, request: FastifyRequest): void {
  const { guard, networkLimit } = request.routeOptions.config;
  try {
    guard?.(request);
  } catch (error) {
    networks.check(request.ip);
    throw error;
  }
  if (networkLimit === 'requests') networks.take(request.ip);
  if (networkLimit === 'failures') networks.check(request.ip);
}

/** Under /v1 authentication precedes 404 and 405. */
function unknownScope(request: FastifyRequest): Scope {
  return /^\/v1(?:\/|$)/.test(decodeURIComponent(pathOf(request.url))) ? 'read' : 'public';
}

/** Returns the error for a path without a route, or for a path that has no route with this method. */
function noRoute(table: readonly RouteRow[], request: FastifyRequest, reply: FastifyReply): ServiceError {
  const allowed = methodsOf(table, pathOf(request.url));
  if (allowed.length === 0)
    return new ServiceError('not_found', 'there is nothing at this address; /docs lists the addresses of this API');
  reply.header('allow', allowed.join(', '));
  return new ServiceError('method_not_allowed', `this address takes ${allowed.join(', ')}`);
}
