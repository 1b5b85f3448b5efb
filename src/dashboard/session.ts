import type { FastifyReply, FastifyRequest } from 'fastify';
import { digest } from '../lib/digest.ts';
import { ServiceError } from '../domain/errors.ts';
import { KNOWN_BROWSER_DAYS } from '../domain/known-browser.ts';
import type { NetworkLimits } from '../intake/network-limits.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { findSession, touchSession } from '../store/accounts/sessions.ts';
import { findTimeZone } from './instants.ts';
import { OIDC_FLOW_SECONDS } from './oidc-flow.ts';
import type { SignedIn, Visit } from './page.ts';

/** The lifetime of the session cookie. The session itself expires in Postgres. */
const SESSION_COOKIE_SECONDS = 30 * 24 * 3_600;
const TOKEN = /^[\w-]{43}$/;

type CookieName = 'sendwright' | 'sendwright-browser' | 'sendwright-oidc';

/**
 * Returns the cookie's name. With `__Host-`, a sibling domain cannot set the cookie; the prefix requires https, so http uses
 * other names.
 */
function cookieName(name: CookieName, isSecure: boolean): string {
  return isSecure ? `__Host-${name}` : name;
}

function isSecure(publicUrl: string | undefined): boolean {
  return publicUrl?.startsWith('https:') ?? false;
}

/** @param token null removes the cookie */
export function setSessionCookie(reply: FastifyReply, publicUrl: string | undefined, token: string | null): void {
  const ageSeconds = token === null ? 0 : SESSION_COOKIE_SECONDS;
  reply.header('set-cookie', cookieHeader('sendwright', publicUrl, token ?? '', ageSeconds));
}

export function setBrowserCookie(reply: FastifyReply, publicUrl: string | undefined, token: string): void {
  reply.header('set-cookie', cookieHeader('sendwright-browser', publicUrl, token, KNOWN_BROWSER_DAYS * 24 * 3_600));
}

/**
 * Returns the header that stores the sealed sign-in at the identity provider. The cookie is Lax, because the identity
 * provider, which is another site, redirects back.
 * @param flow null removes the cookie
 */
export function oidcCookie(publicUrl: string | undefined, flow: string | null): string {
  return cookieHeader('sendwright-oidc', publicUrl, flow ?? '', flow === null ? 0 : OIDC_FLOW_SECONDS);
}

/** @returns the value of a `Set-Cookie` header */
function cookieHeader(name: CookieName, publicUrl: string | undefined, value: string, ageSeconds: number): string {
  const secure = isSecure(publicUrl);
  const attributes = ['Path=/', 'HttpOnly', 'SameSite=Lax', `Max-Age=${ageSeconds}`, ...(secure ? ['Secure'] : [])];
  return `${cookieName(name, secure)}=${value}; ${attributes.join('; ')}`;
}

/** Returns what cookies other than that of the session contain. Tokens are not verified yet. */
export function readCookies(
  request: FastifyRequest,
  publicUrl: string | undefined,
): Pick<Visit, 'browser' | 'browserTimeZone' | 'oidcFlow'> {
  return {
    browser: cookieOf(request, publicUrl, 'sendwright-browser'),
    // `assets/dashboard.js` sets this one.
    browserTimeZone: findTimeZone(readCookie(request, 'sendwright-time-zone') ?? ''),
    oidcFlow: cookieOf(request, publicUrl, 'sendwright-oidc'),
  };
}

/** Limits on queries for invalid cookies. */
interface SessionLimits {
  readonly networks: NetworkLimits;
  /** Digests of recently valid tokens, which are exempt from the limit of their network. */
  readonly known: { has(id: string): boolean; set(id: string, value: true): unknown; delete(id: string): unknown };
}

/**
 * Returns the user of the request's session cookie, or null.
 * @throws ServiceError rate_limit_exceeded
 */
export async function findSignedIn(
  pool: Pool,
  { networks, known }: SessionLimits,
  request: FastifyRequest,
  publicUrl: string | undefined,
): Promise<SignedIn | null> {
  const token = cookieOf(request, publicUrl, 'sendwright');
  if (token === undefined || !TOKEN.test(token)) return null;
  const hash = digest(token);
  const id = hash.toString('base64');
  if (!known.has(id)) networks.check(request.ip);
  const session = await findSession(pool, hash);
  if (!session) {
    known.delete(id);
    networks.countFailure(request.ip);
    return null;
  }
  known.set(id, true);
  if (session.is_stale) await touchSession(pool, hash, request.ip);
  const {
    user,
    time_zone: timeZone,
    organizations,
    org_id: orgId,
    flash,
    has_second_factor: hasSecondFactor,
    by_oidc: byOidc,
    is_oidc_fresh: isOidcFresh,
  } = session;
  const organization = organizations.find(({ id }) => id === orgId) ?? organizations[0] ?? null;
  const oidc = { byOidc, isOidcFresh: byOidc && isOidcFresh };
  return { user, timeZone, token, organizations, organization, flash, hasSecondFactor, ...oidc };
}

/**
 * Refuses a request of a page that was shown for another organization than the one that is now selected.
 * @param pageOrgId the id of that organization; undefined if the request does not contain it
 * @throws ServiceError conflict
 */
export function refuseStalePage({ session }: Visit, pageOrgId: unknown): void {
  if (pageOrgId === undefined || pageOrgId === session?.organization?.id) return;
  throw new ServiceError('conflict', 'You have changed the organization in another tab, so nothing was done here.');
}

function cookieOf(request: FastifyRequest, publicUrl: string | undefined, name: CookieName): string | undefined {
  return readCookie(request, cookieName(name, isSecure(publicUrl)));
}

function readCookie({ headers }: FastifyRequest, name: string): string | undefined {
  const prefix = `${name}=`;
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(prefix))?.slice(prefix.length);
}

/**
 * True if a change was requested by one of our own pages. Browsers send `Sec-Fetch-Site`, `Origin` or both; a request with
 * neither does not come from a browser. Behind a proxy that changes `Host`, `PUBLIC_URL` determines our origin.
 */
export function isFromOurPage({ headers }: FastifyRequest, publicUrl: string | undefined): boolean {
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
  if (origin === undefined) return true;
  if (publicUrl !== undefined && origin === originOf(publicUrl)) return true;
  return originOf(origin) === origin && new URL(origin).host === host;
}

function originOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).origin : undefined;
}

/** Returns the requested path if it is a page of the dashboard, otherwise the overview. Never redirects to another site. */
export function safeNext(next: string | undefined): string {
  const base = 'http://dashboard.invalid';
  if (next === undefined || !URL.canParse(next, base)) return '/dashboard';
  const { origin, pathname, search } = new URL(next, base);
  const isOurs = origin === base && /^\/dashboard(?:\/|$)/.test(pathname) && !pathname.startsWith('/dashboard/sign-');
  return isOurs ? pathname + search : '/dashboard';
}
