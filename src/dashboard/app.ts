import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { digest } from '../lib/digest.ts';
import { acceptsGzip } from '../lib/negotiation.ts';
import { ServiceError } from '../domain/errors.ts';
import { makeClosedSignal } from '../lib/closed-signal.ts';
import { type OrganizationOfUser, setFlash } from '../store/accounts/sessions.ts';
import type { Asset, Assets } from './assets.ts';
import { ErrorPage, formProblems, toErrorView } from './errors.tsx';
import { type FormInput, queryOf, readFields, validateFields } from './forms.ts';
import { OIDC_SIGN_IN } from './oidc-flow.ts';
import type { Context, DashboardDeps, FormState, Page, PageResponse, PageRow, SignedIn, Visit } from './page.ts';
import { baseUrlOf, pathOf, Redirect, Reply, withPool } from './page.ts';
import * as account from './pages/account.tsx';
import * as accountOidc from './pages/account-oidc.tsx';
import * as accountSessions from './pages/account-sessions.tsx';
import * as audit from './pages/audit.tsx';
import * as batches from './pages/batches.tsx';
import * as chats from './pages/chats.tsx';
import * as checklist from './pages/checklist.tsx';
import * as deliveries from './pages/deliveries.tsx';
import * as domainTracking from './pages/domain-tracking.tsx';
import * as domains from './pages/domains.tsx';
import * as emailActions from './pages/email-actions.tsx';
import * as email from './pages/email.tsx';
import * as emails from './pages/emails.tsx';
import * as invitations from './pages/invitations.tsx';
import * as keyEdit from './pages/key-edit.tsx';
import * as keyNew from './pages/key-new.tsx';
import * as keys from './pages/keys.tsx';
import * as memberSecurity from './pages/member-security.tsx';
import * as members from './pages/members.tsx';
import * as numbers from './pages/numbers.tsx';
import * as oidc from './pages/oidc.tsx';
import * as overview from './pages/overview.tsx';
import * as passwordReset from './pages/password-reset.tsx';
import * as requests from './pages/requests.tsx';
import * as secondFactor from './pages/second-factor.tsx';
import * as signInCode from './pages/sign-in-code.tsx';
import * as settings from './pages/settings.tsx';
import * as signIn from './pages/sign-in.tsx';
import * as suppress from './pages/suppress.tsx';
import * as suppressions from './pages/suppressions.tsx';
import * as tags from './pages/tags.tsx';
import * as timeZone from './pages/time-zone.tsx';
import * as webhook from './pages/webhook.tsx';
import * as webhooks from './pages/webhooks.tsx';
import { includesRole } from './roles.tsx';
import {
  findSignedIn,
  isFromOurPage,
  oidcCookie,
  readCookies,
  refuseStalePage,
  safeNext,
  setBrowserCookie,
  setSessionCookie,
} from './session.ts';

const ROOT = '/dashboard';
/** The default maximum size of a form; pages may set another one. */
const MAX_FORM_BYTES = 102_400;
/** Available to members who cannot open their current organization. */
const CHANGE_ORGANIZATION = '/dashboard/organization';
const MAX_KNOWN_SESSIONS = 10_000;
/** Shorter texts, in characters, are not compressed. */
const MIN_GZIP_LENGTH = 1_000;
const gzipAsync = promisify(gzip);

/** Pages load only our own files, contain no inline style or script, and cannot be framed. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "frame-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ');

/** The route table: method, path, required role and page. */
export const PAGES: readonly PageRow[] = [
  ...signIn.rows,
  ...signInCode.rows,
  ...oidc.rows,
  ...passwordReset.rows,
  ...invitations.rows,
  ...overview.rows,
  ...checklist.rows,
  ...emails.rows,
  ...email.rows,
  ...emailActions.rows,
  ...batches.rows,
  ...chats.rows,
  ...domains.rows,
  ...domainTracking.rows,
  ...keys.rows,
  ...keyNew.rows,
  ...keyEdit.rows,
  ...requests.rows,
  ...numbers.rows,
  ...tags.rows,
  ...suppressions.rows,
  ...suppress.rows,
  ...webhooks.rows,
  ...webhook.rows,
  ...deliveries.rows,
  ...members.rows,
  ...memberSecurity.rows,
  ...audit.rows,
  ...settings.rows,
  ...account.rows,
  ...accountOidc.rows,
  ...accountSessions.rows,
  ...timeZone.rows,
  ...secondFactor.rows,
];

declare module 'fastify' {
  interface FastifyRequest {
    /** Set for paths of the route table. */
    visit: Visit | null;
  }
  interface FastifyContextConfig {
    page?: PageRow;
  }
}

/**
 * The Fastify plugin of the dashboard. Register it with the prefix `/dashboard`. It has its own error pages and accepts only
 * forms.
 */
export function dashboard(deps: DashboardDeps, assets: Assets): FastifyPluginAsync {
  return async (app) => {
    const site = siteOf(deps, assets);
    app.decorateRequest('visit', null);
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) => {
      done(null, readFields(body as string));
    });
    app.addHook('onRequest', async (request, reply) => admit(site, request, reply));
    app.addHook('onSend', async (request, reply) => setSecurityHeaders(request, reply));
    app.setErrorHandler((error, request, reply) => sendErrorPage(site, error, request, reply));
    app.setNotFoundHandler((request, reply) =>
      sendErrorPage(site, new ServiceError('not_found', 'there is nothing at this address'), request, reply),
    );
    for (const asset of assets.values()) serveAsset(app, asset);
    for (const row of PAGES) servePage(app, site, row);
  };
}

interface Site {
  readonly deps: DashboardDeps;
  readonly asset: Visit['asset'];
  readonly knownSessions: LRUCache<string, true>;
}

function siteOf(deps: DashboardDeps, assets: Assets): Site {
  const asset = (name: string): string => {
    const file = assets.get(name);
    if (!file) throw new Error(`assets.ts has no ${name}`);
    return file.path;
  };
  return { deps, asset, knownSessions: new LRUCache({ max: MAX_KNOWN_SESSIONS }) };
}

function serveAsset(app: FastifyInstance, { path, type, body, gzipped }: Asset): void {
  app.get(path.slice(ROOT.length), { schema: { hide: true } }, async (request, reply) => {
    const isGzip = acceptsGzip(request);
    if (isGzip) reply.header('content-encoding', 'gzip');
    return reply
      .headers({
        'content-type': type,
        'cache-control': 'public, max-age=31536000, immutable',
        vary: 'accept-encoding',
      })
      .send(isGzip ? gzipped : body);
  });
}

function servePage(app: FastifyInstance, site: Site, row: PageRow): void {
  const [method, path, , page, cost] = row;
  const url = path.slice(ROOT.length) || '/';
  const kind = { isRead: method === 'GET', isExpensive: cost === 'expensive' };
  app.route({
    method,
    url,
    config: { page: row },
    bodyLimit: page.bodyLimit ?? MAX_FORM_BYTES,
    // The schema only declares that there is a body; `answerOf` validates the form.
    schema: { hide: true, ...(method === 'POST' && { body: {} }) },
    handler: async (request, reply) => {
      if (!request.visit) throw new Error('a page was opened without a visit');
      const visit = request.visit;
      if (method === 'GET' && visit.session?.flash && request.headers['hx-request'] === undefined) {
        await setFlash(site.deps.pool, digest(visit.session.token), null);
      }
      const answer = async (shown: Visit): Promise<FastifyReply> =>
        send(site, await respond(page, shown, request.body as FormInput | undefined), shown, reply);
      const { sessionOrgId: orgId } = request;
      // Public pages use the connections of the service.
      if (orgId === null) return answer(visit);
      const use = { ...kind, orgId, closed: () => makeClosedSignal(reply) };
      return site.deps.shares.run(use, (pool) => answer(withPool(visit, pool)));
    },
  });
}

/** Authenticates and authorizes before the form is read. */
async function admit(site: Site, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
  const row = request.routeOptions.config.page;
  if (!row) return undefined;
  const [method, path, access, page] = row;
  const { publicUrl, networks } = site.deps;
  if (method !== 'GET' && !isFromOurPage(request, publicUrl)) {
    throw new ServiceError('insufficient_scope', 'This came from another site, so nothing was changed.');
  }
  if (access === 'public') networks.take(request.ip);
  const session = await readSession(site, request);
  const visit = { ...visitOf(site, request, page), session };
  request.visit = visit;
  if (access === 'public') return undefined;
  if (!session) return askToSignIn(method, visit, request, reply);
  const { organization, user } = session;
  if (!organization) {
    throw new ServiceError('insufficient_scope', `${user.email} is in no organization; ask for an invitation.`);
  }
  refuseStalePage(visit, request.headers['x-organization']);
  if (!includesRole(organization.role, access)) {
    throw new ServiceError(
      'insufficient_scope',
      `You are a ${organization.role} here, and this needs the role ${access}.`,
    );
  }
  const required = requiredPage(session, organization, site.deps.oidc !== null);
  if (required !== undefined && !path.startsWith(required) && path !== CHANGE_ORGANIZATION) {
    const next = method === 'GET' ? visit.url : pageOfForm(request);
    return redirectTo(required === OIDC_SIGN_IN ? required + queryOf({ next }) : required, request, reply);
  }
  request.sessionOrgId = organization.id;
  const context: Context = { ...visit, session, user, organization, role: organization.role };
  request.visit = context;
  return undefined;
}

function readSession({ deps, knownSessions: known }: Site, request: FastifyRequest): Promise<SignedIn | null> {
  const { pool, networks, publicUrl } = deps;
  return findSignedIn(pool, { networks, known }, request, publicUrl);
}

function visitOf(site: Site, request: FastifyRequest, page: Page | undefined): Visit {
  const { deps, asset } = site;
  const [, search = ''] = /\?(.*)$/s.exec(request.url) ?? [];
  const input = readFields(search);
  const { values, problems } = page ? validateFields(page.query, input) : { values: {}, problems: {} };
  return {
    deps,
    pool: deps.pool,
    baseUrl: baseUrlOf(request, deps.publicUrl),
    url: request.url,
    address: request.ip,
    userAgent: request.headers['user-agent'],
    ...readCookies(request, deps.publicUrl),
    requestId: request.id,
    params: (request.params ?? {}) as Record<string, string>,
    query: values,
    input,
    problems,
    session: null,
    asset,
  };
}

/** Redirects to the sign-in page, which leads back to the requested page, or to the page with the form. */
function askToSignIn(method: string, visit: Visit, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const isForm = method !== 'GET';
  const next = isForm ? pageOfForm(request) : visit.url;
  const query = queryOf({ next: next === ROOT ? '' : next, ended: isForm ? 'true' : '' });
  return redirectTo(`${ROOT}/sign-in${query}`, request, reply);
}

function pageOfForm({ headers: { referer = '' } }: FastifyRequest): string {
  return URL.canParse(referer) ? safeNext(new URL(referer).pathname + new URL(referer).search) : ROOT;
}

/** Returns the page that a user must complete before the organization's pages open; undefined for none. */
function requiredPage(session: SignedIn, organization: OrganizationOfUser, hasOidc: boolean): string | undefined {
  if (organization.requires_oidc && !session.isOidcFresh) {
    // A person who is signed in at the identity provider comes back without seeing a page.
    return session.byOidc && hasOidc ? OIDC_SIGN_IN : oidc.OIDC_REQUIRED;
  }
  // The identity provider is responsible for the second factor of its sign-ins.
  if (session.byOidc) return undefined;
  if (organization.requires_second_factor && !session.hasSecondFactor) return secondFactor.SECOND_FACTOR;
  return undefined;
}

function redirectTo(path: string, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  // htmx would insert another page into the refreshed part, so the whole page is redirected.
  if (request.headers['hx-request'] !== undefined) return reply.code(401).header('hx-redirect', path).send('');
  return reply.redirect(path, 303);
}

async function respond(page: Page, visit: Visit, body: FormInput | undefined): Promise<PageResponse> {
  const run = page.run as (context: Visit, form: unknown) => Promise<PageResponse>;
  if (!page.form) return run(visit, undefined);
  const input = body ?? {};
  // Forms of visitors, such as "Sign out", do not act on the selected organization.
  if (page.isFor === 'members' && pathOf(visit) !== CHANGE_ORGANIZATION) refuseStalePage(visit, input['_org']);
  const renderForm = page.renderForm as ((context: Visit, formState: FormState) => PageResponse) | undefined;
  const { values, problems: invalid } = validateFields(page.form, input);
  const [[field, problem] = []] = Object.entries(invalid);
  if (problem !== undefined) {
    if (!renderForm) throw new ServiceError('validation_error', problem, field);
    return new Reply((await renderForm(visit, { input, problems: invalid })) as string, { status: 422 });
  }
  try {
    return await run(visit, values);
  } catch (error) {
    const refused = renderForm && formProblems(error);
    if (!refused) throw error;
    const { problems, ...reply } = refused;
    return new Reply((await renderForm(visit, { input, problems })) as string, reply);
  }
}

async function send(site: Site, response: PageResponse, visit: Visit, reply: FastifyReply): Promise<FastifyReply> {
  if (response instanceof Redirect) {
    const { pool, publicUrl } = site.deps;
    const { flash, token, browser, oidcFlow } = response.options;
    const session = token ?? visit.session?.token;
    if (flash !== undefined && session !== undefined) await setFlash(pool, digest(session), flash);
    if (token !== undefined) setSessionCookie(reply, publicUrl, token);
    if (browser !== undefined) setBrowserCookie(reply, publicUrl, browser);
    if (oidcFlow !== undefined) reply.header('set-cookie', oidcCookie(publicUrl, oidcFlow));
    return reply.redirect(response.to, 303);
  }
  const { body, status, headers } = response instanceof Reply ? response : new Reply(response);
  const content = await body;
  const hasProblems = Object.keys(visit.problems).length > 0;
  reply
    .code(status === 200 && hasProblems ? 422 : status)
    .headers({ 'content-type': 'text/html; charset=utf-8', ...headers });
  if (typeof content !== 'string') return reply.send(content);
  return sendText(content.startsWith('<html') ? `<!doctype html>${content}` : content, reply);
}

/**
 * Sends text, compressed if the browser accepts it. The response to a form is not compressed: it may contain a new secret
 * beside the form's input, and the compressed length would reveal how similar they are.
 */
async function sendText(text: string, reply: FastifyReply): Promise<FastifyReply> {
  reply.header('vary', 'accept-encoding');
  if (reply.request.method !== 'GET' || text.length < MIN_GZIP_LENGTH || !acceptsGzip(reply.request))
    return reply.send(text);
  return reply.header('content-encoding', 'gzip').send(await gzipAsync(text));
}

/** Sets the headers that the response has not set itself. */
function setSecurityHeaders(request: FastifyRequest, reply: FastifyReply): void {
  const hasSecretPath = request.routeOptions.url?.includes(':token') ?? false;
  const headers = {
    'content-security-policy': POLICY,
    'cache-control': 'no-store',
    'cross-origin-opener-policy': 'same-origin',
    // With no-referrer, browsers send no `Origin` with forms, which isFromOurPage needs.
    'referrer-policy': hasSecretPath ? 'strict-origin' : 'same-origin',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'x-robots-tag': 'noindex, nofollow',
  };
  for (const [name, value] of Object.entries(headers)) if (!reply.hasHeader(name)) reply.header(name, value);
}

async function sendErrorPage(site: Site, error: unknown, request: FastifyRequest, reply: FastifyReply) {
  const errorView = toErrorView(error);
  reply.errorCode = errorView.code;
  if (errorView.status >= 500) request.log.error({ err: error }, errorView.title);
  if (errorView.status === 503) reply.header('retry-after', '1');
  if (error instanceof ServiceError && error.retryAfterSeconds)
    reply.header('retry-after', String(error.retryAfterSeconds));
  const visit = request.visit ?? (await visitWithoutRow(site, request));
  const page = ErrorPage({ visit, errorView });
  return send(site, new Reply(page, { status: errorView.status }), visit, reply);
}

/**
 * Reads the session for a path without a route, which `admit` does not do, so that members keep the navigation on the error
 * page.
 */
async function visitWithoutRow(site: Site, request: FastifyRequest): Promise<Visit> {
  const visit = visitOf(site, request, undefined);
  if (!request.is404) return visit;
  // Without Postgres, or beyond the limit on invalid cookies, the page is shown without the navigation.
  return { ...visit, session: await readSession(site, request).catch(() => null) };
}
