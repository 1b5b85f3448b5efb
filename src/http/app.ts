import { maxHeaderSize } from 'node:http';
import swagger from '@fastify/swagger';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest, LogController } from 'fastify';
import { ServiceError } from '../domain/errors.ts';
import { makeClosedSignal } from '../lib/closed-signal.ts';
import { newId } from '../lib/ids.ts';
import { isInRanges } from '../lib/ip-ranges.ts';
import { requestAnswered } from '../telemetry/topics.ts';
import { type HttpDeps, makeRouteDeps, type RouteDeps, withPool } from './deps.ts';
import { makeCurrentDescription } from './docs/current-examples.ts';
import { errorStatuses } from './docs/errors.ts';
import { openapi } from './docs/openapi.ts';
import { auditChange, recordTargetId } from './plugins/audit.ts';
import { authenticate, authorize, decorateCaller, type Scope } from './plugins/auth.ts';
import { limitBodiesInFlight } from './plugins/bodies-in-flight.ts';
import { serveHtml } from './plugins/browser-pages.ts';
import { closeAfterLastResponse } from './plugins/closing.ts';
import { respondToBrokenRequest, sendError, tooLarge } from './plugins/errors.ts';
import { registerIdempotency } from './plugins/idempotency.ts';
import { readJson, refuseBodies, refuseCompression } from './plugins/json.ts';
import { addParametersConstraint, methodsOf, PARAMETERS } from './plugins/methods.ts';
import { limitRequests, reportRateLimits } from './plugins/rate-limit.ts';
import { recordRequest } from './plugins/request-log.ts';
import { acceptAnyBody } from './plugins/any-body.ts';
import { pathOf, normalizeTarget } from './plugins/target.ts';
import { type Handler, traceHandler } from './plugins/trace.ts';
import { makeValidatorCompiler } from './plugins/validation.ts';
import type { Guard, Route, RouteRow } from './route.ts';
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
import * as requests from './routes/requests.ts';
import * as sms from './routes/sms.ts';
import * as statistics from './routes/statistics.ts';
import * as suppressions from './routes/suppressions.ts';
import * as tracking from './routes/tracking.ts';
import * as unsubscribe from './routes/unsubscribe.ts';
import * as webhooks from './routes/webhooks.ts';
import { errorResponses } from './schemas/common.ts';

/** Long enough for a slow upload of the largest body: 43 MB at 1.2 Mbit/s. */
const REQUEST_TIMEOUT_MS = 300_000;
/**
 * The time for the headers of a request. The first request of a connection must arrive within it as well. Longer than a busy process
 * may stand still: it checks the time before it reads what has arrived meanwhile.
 */
const HEADERS_TIMEOUT_MS = 20_000;
/** The interval at which both timeouts are checked. */
const TIMEOUT_CHECK_INTERVAL_MS = 5_000;
/** Longer than proxies keep an idle connection, by default 60 s in many: a request must not meet the closing of its connection. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000;

declare module 'fastify' {
  interface FastifyContextConfig {
    scope?: Scope;
    guard?: Guard | undefined;
    networkLimit?: Route['networkLimit'];
  }
}

/** All routes of the API: method, path, required scope, handler, and whether it is expensive. */
export const ROUTES: readonly RouteRow[] = [
  ['POST', '/v1/emails', 'send', emails.sendEmail],
  ['GET', '/v1/emails', 'read', lists.emails],
  ['GET', '/v1/emails/tags', 'read', lists.tags],
  ['POST', '/v1/emails/batch', 'send', batches.sendBatch],
  ['GET', '/v1/emails/batch', 'read', batches.list],
  ['GET', '/v1/emails/batch/:id', 'read', batches.getBatch],
  ['POST', '/v1/emails/batch/:id/cancel', 'send', batches.cancelBatchMembers],
  ['GET', '/v1/emails/:id', 'read', emails.getEmail],
  ['PATCH', '/v1/emails/:id', 'send', emails.reschedule],
  ['POST', '/v1/emails/:id/cancel', 'send', emails.cancel],
  ['GET', '/v1/emails/:id/content', 'read', content.getContent],
  ['DELETE', '/v1/emails/:id/content', 'manage', content.deleteContent],
  ['GET', '/v1/emails/:id/attachments', 'read', attachments.listAttachments],
  ['GET', '/v1/emails/:id/attachments/:attachmentId', 'read', attachments.getAttachment],
  ['GET', '/v1/emails/:id/attachments/:attachmentId/download', 'public', attachments.downloadAttachment],

  ['POST', '/v1/chatapp', 'chat', chatapp.send],
  ['GET', '/v1/chatapp', 'read', chatapp.list],
  ['POST', '/v1/chatapp/numbers', 'manage-lasting', chatNumbers.connect],
  ['GET', '/v1/chatapp/numbers', 'read', chatNumbers.list],
  ['GET', '/v1/chatapp/numbers/:id', 'read', chatNumbers.get],
  ['DELETE', '/v1/chatapp/numbers/:id', 'manage', chatNumbers.remove],
  ['GET', '/v1/chatapp/received/:id/download', 'public', chatMedia.download],
  ['GET', '/v1/chatapp/:id', 'read', chatapp.get],
  ['PATCH', '/v1/chatapp/:id', 'chat', chatapp.reschedule],
  ['POST', '/v1/chatapp/:id/cancel', 'chat', chatapp.cancel],
  ['DELETE', '/v1/chatapp/:id/content', 'manage', chatapp.eraseContent],

  ['POST', '/v1/sms', 'chat', sms.send],
  ['GET', '/v1/sms', 'read', sms.list],
  ['GET', '/v1/sms/senders', 'read', sms.senders],
  ['GET', '/v1/sms/:id', 'read', sms.get],
  ['PATCH', '/v1/sms/:id', 'chat', sms.reschedule],
  ['POST', '/v1/sms/:id/cancel', 'chat', sms.cancel],
  ['DELETE', '/v1/sms/:id/content', 'manage', sms.eraseContent],

  ['GET', '/v1/stats', 'read', statistics.statistics, 'expensive'],

  ['POST', '/v1/domains', 'manage-lasting', domains.add],
  ['GET', '/v1/domains', 'read', domains.list],
  ['GET', '/v1/domains/:id', 'read', domains.get],
  ['PATCH', '/v1/domains/:id', 'manage-bounded', domains.edit],
  ['POST', '/v1/domains/:id/verify', 'manage-bounded', domains.verify],
  ['DELETE', '/v1/domains/:id', 'manage-bounded', domains.remove],

  ['POST', '/v1/suppressions', 'manage', suppressions.addSuppressions],
  ['GET', '/v1/suppressions', 'read', suppressions.list],
  ['GET', '/v1/suppressions/:idOrEmail', 'read', suppressions.getSuppression],
  ['DELETE', '/v1/suppressions/:idOrEmail', 'manage', suppressions.removeSuppression],

  ['POST', '/v1/erasures', 'manage', erasures.erase, 'expensive'],

  ['POST', '/v1/webhooks', 'manage-lasting', webhooks.create],
  ['GET', '/v1/webhooks', 'read', webhooks.list],
  ['GET', '/v1/webhooks/:id', 'read', webhooks.get],
  ['PATCH', '/v1/webhooks/:id', 'manage-lasting', webhooks.edit],
  ['DELETE', '/v1/webhooks/:id', 'manage', webhooks.remove],
  ['POST', '/v1/webhooks/:id/rotate-secret', 'manage-lasting', webhooks.rotate],
  ['POST', '/v1/webhooks/:id/test', 'manage', webhooks.test],
  ['POST', '/v1/webhooks/:id/replay', 'manage', deliveries.replayPeriod, 'expensive'],
  ['GET', '/v1/webhooks/:id/deliveries', 'read', deliveries.list],
  ['GET', '/v1/webhooks/:id/deliveries/:deliveryId', 'read', deliveries.get],
  ['POST', '/v1/webhooks/:id/deliveries/:deliveryId/replay', 'manage', deliveries.replay],

  ['POST', '/v1/keys', 'manage-bounded', keys.issue],
  ['GET', '/v1/keys', 'manage-bounded', keys.list],
  ['GET', '/v1/keys/:id', 'manage-bounded', keys.get],
  ['DELETE', '/v1/keys/:id', 'manage-bounded', keys.revoke],

  ['GET', '/v1/requests', 'manage', requests.list],

  ['GET', '/unsubscribe/:token', 'public', unsubscribe.askToUnsubscribe],
  ['POST', '/unsubscribe/:token', 'public', unsubscribe.unsubscribeNow],

  ['GET', '/t/o/:token', 'public', tracking.openImage],
  ['GET', '/t/c/:token', 'public', tracking.followLink],

  ['POST', '/callbacks/postmark', 'public', callbacks.postmark],
  ['POST', '/callbacks/twilio', 'public', chatCallbacks.twilio],
  ['POST', '/callbacks/twilio/inbound', 'public', chatCallbacks.twilioInbound],
  ['GET', '/callbacks/meta', 'public', chatCallbacks.metaChallenge],
  ['POST', '/callbacks/meta', 'public', chatCallbacks.meta],

  ['GET', '/', 'public', health.toDashboard],
  ['GET', '/healthz', 'public', health.healthz],
  ['GET', '/readyz', 'public', health.readyz],
  ['GET', '/metrics', 'public', health.metrics],
  ['GET', '/openapi.json', 'public', health.apiDescription],
];

/** Sets HTTP Strict Transport Security (RFC 6797). Browsers ignore it on plain http. */
function requireHttps(app: FastifyInstance): void {
  app.addHook('onSend', async (_request, reply) => {
    reply.header('strict-transport-security', 'max-age=31536000');
  });
}

/** Creates the HTTP server. It does not listen yet. */
export async function makeApp(deps: HttpDeps): Promise<FastifyInstance> {
  const app = Fastify({
    loggerInstance: deps.log,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: deps.maxBodyBytes,
    genReqId: () => newId('req'),
    requestIdHeader: false,
    return503OnClosing: false,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    http: {
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
      // A request without Host gets 400 from a hook. That of Node has no request id and no error envelope.
      requireHostHeader: false,
    },
    trustProxy: deps.trustedProxies.length > 0 && ((address) => isInRanges(address, deps.trustedProxies)),
    rewriteUrl: (request) => normalizeTarget(request.url as string),
    // No id is that long; the request line limits the length anyway.
    routerOptions: { maxParamLength: maxHeaderSize },
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id);
      void sendError(error, request, reply);
    },
    clientErrorHandler: respondToBrokenRequest,
  });
  // RFC 9110 §10.1.1: an unknown expectation may be ignored. Node would respond with a bare 417.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  addParametersConstraint(app, ROUTES);
  decorateCaller(app);
  app.decorateRequest('targetId', null);
  app.decorateReply('errorCode', null);
  app.setValidatorCompiler(makeValidatorCompiler());
  app.decorate('publicUrl', deps.publicUrl);
  app.setErrorHandler(sendError);
  readJson(app, deps.maxBodyBytes);
  registerIdempotency(app, deps.pool);
  refuseBodies(app);
  closeAfterLastResponse(app);
  reportRateLimits(app, deps.limits);
  if (deps.publicUrl?.startsWith('https:')) requireHttps(app);
  await app.register(swagger, openapi(deps.publicUrl));

  const describeApi = makeCurrentDescription(() => app.swagger(), deps.docsSenderDomain);
  const routeDeps = makeRouteDeps(deps, describeApi);
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
    const hosts = countHosts(request);
    if (hosts > 1 || (hosts === 0 && request.raw.httpVersion === '1.1')) {
      const message = hosts === 0 ? 'the request has no Host header' : 'the request has more than one Host header';
      return sendError(new ServiceError('invalid_json', message), request, reply);
    }
    await admit(routeDeps, request, reply);
    if (request.is404) throw noRoute(request, reply);
  });
  app.addHook('onClose', () => routeDeps.trackingRecorder.flush());
  limitBodiesInFlight(app, deps.maxBodyBytes);
  app.addHook('onResponse', async (request, reply) => {
    const { method, routeOptions, caller } = request;
    const { statusCode: status, elapsedTime } = reply;
    if (status === 401 && routeOptions.config.scope === 'public') deps.networks.countFailure(request.ip);
    requestAnswered.publish({ method, route: routeOptions.url ?? 'none', status, seconds: elapsedTime / 1_000 });
    if (deps.requestLog) recordRequest(deps.requestLog, request, reply);
    const line = {
      method,
      route: routeOptions.url,
      status,
      ms: Math.round(elapsedTime),
      org: caller?.org_id,
      key: caller?.id,
      target: request.targetId ?? undefined,
    };
    request.log.info(line, 'request');
  });
  for (const row of ROUTES) if (!row[3].isPage && !row[3].isRaw) serve(app, routeDeps, row);
  await app.register(async (pages) => {
    serveHtml(pages);
    for (const row of ROUTES) if (row[3].isPage) serve(pages, routeDeps, row);
  });
  await app.register(async (callbacks) => {
    // Signatures are computed over the raw bytes of a body.
    acceptAnyBody(callbacks, (body) => body);
    for (const row of ROUTES) if (row[3].isRaw) serve(callbacks, routeDeps, row);
  });
  return app;
}

function serve(app: FastifyInstance, deps: RouteDeps, row: RouteRow): void {
  const [method, url, scope, { schema, guard, networkLimit, attachValidation = false, bodyLimit, ...route }, cost] =
    row;
  const limit = bodyLimit === undefined ? {} : { bodyLimit };
  const handler = scope === 'public' ? publicHandler(deps, route) : keyedHandler(deps, route, method, cost);
  const handle = deps.tracer && scope !== 'public' ? traceHandler(deps.tracer, handler) : handler;
  const [success = 200] = Object.keys(schema.response ?? {}).map(Number);
  const errors = scope === 'public' ? {} : errorResponses(...errorStatuses(row));
  // Changes of the account are recorded in the audit log.
  const isAudited = scope.startsWith('manage') && method !== 'GET';
  const hooks = {
    ...(scope !== 'public' && method !== 'GET' && { preSerialization: recordTargetId }),
    ...(isAudited && { onSend: auditChange(deps.pool) }),
  };
  const config = { scope, guard, ...(networkLimit && { networkLimit }) };
  app.route({
    method,
    url,
    ...(url.includes(':') && { constraints: { [PARAMETERS]: true } }),
    schema: { ...schema, response: { ...schema.response, ...errors }, hide: schema.operationId === undefined },
    handler: (request, reply) => handle(request, reply.code(success)),
    attachValidation,
    ...limit,
    ...hooks,
    config,
  });
}

type RouteHandler = Pick<Route, 'handler'>;

function publicHandler(deps: RouteDeps, route: RouteHandler): Handler {
  return (request, reply) => route.handler(deps, request, reply);
}

/** Gives each request the database connections of its organization. */
function keyedHandler(deps: RouteDeps, route: RouteHandler, method: RouteRow[0], cost: RouteRow[4]): Handler {
  const kind = { isRead: method === 'GET', isExpensive: cost === 'expensive' };
  return (request, reply) =>
    deps.shares.run({ ...kind, orgId: request.orgId, closed: () => makeClosedSignal(reply) }, (pool) =>
      route.handler(withPool(deps, pool), request, reply),
    );
}

/**
 * Counts the Host headers of a request. The response to an HTTP/1.1 request without one, and to any with several, is 400, also of the
 * dashboard (RFC 9112 §3.2). `headers` contains the first of several only.
 */
function countHosts({ raw: { rawHeaders } }: FastifyRequest): number {
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) if (/^host$/i.test(rawHeaders[index] ?? '')) hosts++;
  return hosts;
}

/** Authenticates, authorizes, rate-limits and checks Content-Length before the body is read. */
async function admit(deps: RouteDeps, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const scope = request.is404 ? unknownScope(request) : (request.routeOptions.config.scope ?? 'read');
  if (scope !== 'public') {
    request.caller = await authenticate(deps.keys, deps.networks, request);
    if (!request.is404) authorize(request.caller, scope);
    limitRequests(deps.limits, request.caller, reply);
  } else {
    admitNetwork(deps, request);
  }
  if (Number(request.headers['content-length'] ?? 0) > request.routeOptions.bodyLimit) {
    throw tooLarge(request.routeOptions.bodyLimit);
  }
  if (scope !== 'public' && !request.is404) refuseCompression(request, reply);
}

/**
 * Runs the guard of a public route. Applies the rate limit of the caller's network if the guard refuses the caller, and as the
 * route's `networkLimit` requires.
 */
function admitNetwork(deps: RouteDeps, request: FastifyRequest): void {
  const { networks } = deps;
  const { guard, networkLimit } = request.routeOptions.config;
  try {
    guard?.(deps, request);
  } catch (error) {
    networks.check(request.ip);
    throw error;
  }
  if (networkLimit === 'requests') networks.take(request.ip);
  if (networkLimit === 'failures') networks.check(request.ip);
}

/** Under /v1, authentication takes precedence over 404 and 405. */
function unknownScope(request: FastifyRequest): Scope {
  return /^\/v1(?:\/|$)/.test(decodeURIComponent(pathOf(request.url))) ? 'read' : 'public';
}

/** Creates the error for a path without a route, or for a path that has no route with this method. */
function noRoute(request: FastifyRequest, reply: FastifyReply): ServiceError {
  const allowed = methodsOf(ROUTES, pathOf(request.url));
  if (allowed.length === 0)
    return new ServiceError('not_found', 'there is nothing at this address; /docs lists the addresses of this API');
  reply.header('allow', allowed.join(', '));
  return new ServiceError('method_not_allowed', `this method is not allowed here; allowed: ${allowed.join(', ')}`);
}
