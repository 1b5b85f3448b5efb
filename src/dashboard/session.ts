import type { FastifyReply, FastifyRequest } from 'fastify';
import { digest } from '../lib/digest.ts';
import { KNOWN_BROWSER_DAYS } from '../domain/known-browser.ts';
import type { NetworkLimits } from '../intake/network-limits.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { findSession, touchSession } from '../store/accounts/sessions.ts';
import type { SignedIn } from './page.ts';

/** Seconds after which a browser forgets a cookie; the session itself ends in Postgres. */
const COOKIE_AGE = 30 * 24 * 3_600;
const TOKEN = /^[\w-]{43}$/;

/**
 * A cookie's name. `__Host-` makes browsers refuse one that a neighbour's page has set, and needs https; development on
 * plain http has names of its own.
 */
function cookieName(name: 'sendwright' | 'sendwright-browser', isSecure: boolean): string {
  return isSecure ? `__Host-${name}` : name;
}

function isSecure(publicUrl: string | undefined): boolean {
  return publicUrl?.startsWith('https:') ?? false;
}

/** Gives the browser a session's token, or takes it away. */
export function setSessionCookie(reply: FastifyReply, publicUrl: string | undefined, token: string | null): void {
  setCookie(reply, 'sendwright', publicUrl, token ?? '', token === null ? 0 : COOKIE_AGE);
}

/** Gives the browser the token by which it is known at the next sign-in. */
export function setBrowserCookie(reply: FastifyReply, publicUrl: string | undefined, token: string): void {
  setCookie(reply, 'sendwright-browser', publicUrl, token, KNOWN_BROWSER_DAYS * 24 * 3_600);
}

function setCookie(
  reply: FastifyReply,
  name: Parameters<typeof cookieName>[0],
  publicUrl: string | undefined,
  value: string,
  ageSeconds: number,
): void {
  const secure = isSecure(publicUrl);
  const attributes = ['Path=/', 'HttpOnly', 'SameSite=Lax', `Max-Age=${ageSeconds}`, ...(secure ? ['Secure'] : [])];
  reply.header('set-cookie', `${cookieName(name, secure)}=${value}; ${attributes.join('; ')}`);
}

/** The token of a known browser, unchecked. */
export function browserToken(request: FastifyRequest, publicUrl: string | undefined): string | undefined {
  return cookieOf(request, cookieName('sendwright-browser', isSecure(publicUrl)));
}

/** What bounds the queries that wrong cookies cost. */
export interface SessionLimits {
  readonly networks: NetworkLimits;
  /** Digests of tokens that were right lately: a session is not refused for what others of its network do. */
  readonly known: { has(id: string): boolean; set(id: string, value: true): unknown; delete(id: string): unknown };
}

/**
 * Who is signed in, by the request's cookie.
 * @throws ServiceError rate_limit_exceeded
 */
export async function findSignedIn(
  pool: Pool,
  { networks, known }: SessionLimits,
  request: FastifyRequest,
  publicUrl: string | undefined,
): Promise<SignedIn | null> {
  const token = cookieOf(request, cookieName('sendwright', isSecure(publicUrl)));
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
  if (session.is_stale) await touchSession(pool, hash);
  const { user, organizations, org_id: orgId, flash } = session;
  const organization = organizations.find(({ id }) => id === orgId) ?? organizations[0] ?? null;
  return { user, token, organizations, organization, flash };
}

function cookieOf({ headers }: FastifyRequest, name: string): string | undefined {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1);
}

/**
 * Whether a change is asked for by one of our own pages. Browsers say so in one header or both; a program that says
 * nothing carries nobody's cookie by accident. Behind a proxy that changes `Host`, `PUBLIC_URL` tells our origin.
 */
export function isFromOurPage({ headers }: FastifyRequest, publicUrl: string | undefined): boolean {
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
  if (origin === undefined) return true;
  if (publicUrl !== undefined && origin === originOf(publicUrl)) return true;
  const given = originOf(origin);
  return given !== undefined && given === origin && new URL(given).host === host;
}

function originOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).origin : undefined;
}

/** A path of the dashboard to go on to, whatever was asked for: never another site. */
export function safeNext(next: string | undefined): string {
  const base = 'http://dashboard.invalid';
  if (next === undefined || !URL.canParse(next, base)) return '/dashboard';
  const { origin, pathname, search } = new URL(next, base);
  const isOurs = origin === base && /^\/dashboard(?:\/|$)/.test(pathname) && !pathname.startsWith('/dashboard/sign-');
  return isOurs ? pathname + search : '/dashboard';
}
