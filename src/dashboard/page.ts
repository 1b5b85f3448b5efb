import type { Readable } from 'node:stream';
import type { FastifyBaseLogger, FastifyRequest } from 'fastify';
import { type Static, type TObject, Type } from 'typebox';
import type { ConnectDeps } from '../accounts/chat-numbers.ts';
import type { Oidc } from '../accounts/oidc.ts';
import type { AccountEmailSettings } from '../intake/account-emails.ts';
import type { ConnectionShares } from '../intake/connection-shares.ts';
import type { IntakeDeps } from '../intake/emails.ts';
import type { NetworkLimits } from '../intake/network-limits.ts';
import type { SenderDomainDeps } from '../sender-domains/deps.ts';
import type { OrganizationOfUser } from '../store/accounts/sessions.ts';
import type { FileStore } from '../store/files/file-store.ts';
import type { Pool } from '../store/postgres/pool.ts';
import type { Role, User } from '../store/accounts/users.ts';
import type { FormInput, Problems } from './forms.ts';
import { findTimeZone } from './instants.ts';
import type { SecretKeys } from '../lib/secret-key.ts';

export interface DashboardDeps extends IntakeDeps {
  readonly log: FastifyBaseLogger;
  /** Pages of an organization use connections of its share only. */
  readonly shares: ConnectionShares;
  /** The settings `SECRET_KEY` and `SECRET_KEY_OLD`. */
  readonly secretKey: SecretKeys;
  /** The setting `PUBLIC_URL`. With https, cookies are restricted to https. */
  readonly publicUrl: string | undefined;
  /** Null if this service sends no emails about accounts. */
  readonly accountEmails: AccountEmailSettings | null;
  /** The identity provider for sign-in by OpenID Connect, or null. */
  readonly oidc: Oidc | null;
  readonly webhookAllowCidrs: readonly string[];
  /** Limits requests for public pages and those with invalid sessions, by network. */
  readonly networks: NetworkLimits;
  readonly senderDomains: SenderDomainDeps;
  readonly files: FileStore;
  /** The settings `BODY_RETENTION_DAYS`, `EMAIL_RETENTION_DAYS` and `REQUEST_LOG_DAYS`. */
  readonly retention: { readonly bodyDays: number; readonly emailDays: number; readonly requestLogDays: number };
  /** Verifies at a provider that a chat-app number belongs to the account of its token. */
  readonly verifyNumber: ConnectDeps['verifyNumber'];
  /** Temporal's UI: the setting `TEMPORAL_UI_URL`, and the namespace of our workflows. */
  readonly temporalUi?: { readonly url: string; readonly namespace: string } | undefined;
}

/** A request for a page. `Query` is the type of its query string. */
export interface Visit<Query = unknown> {
  readonly deps: DashboardDeps;
  readonly pool: Pool;
  /** Our URL for browsers, without a trailing slash: `https://mail.example.com`. */
  readonly baseUrl: string;
  /** The path of the request with its query string. */
  readonly url: string;
  /** The client's IP address. */
  readonly address: string;
  /** The User-Agent of the request. */
  readonly userAgent: string | undefined;
  /** The token of a known browser, not verified yet. */
  readonly browser: string | undefined;
  /** The browser's time zone, which a script stores in a cookie; undefined without scripts. */
  readonly browserTimeZone: string | undefined;
  /** The sealed cookie of a sign-in at the identity provider. */
  readonly oidcFlow: string | undefined;
  readonly requestId: string;
  readonly params: Readonly<Record<string, string>>;
  /** The valid parameters; the invalid ones are in `problems`. */
  readonly query: Query;
  readonly input: FormInput;
  readonly problems: Problems;
  readonly session: SignedIn | null;
  /** Returns the path of an asset. */
  readonly asset: (name: string) => string;
}

/** Returns the same visit, whose page uses this pool. */
export function withPool(visit: Visit, pool: Pool): Visit {
  const { deps } = visit;
  return { ...visit, pool, deps: { ...deps, pool, senderDomains: { ...deps.senderDomains, pool } } };
}

export interface SignedIn {
  readonly user: User;
  /** The time zone in which the user reads times; null for the browser's time zone. */
  readonly timeZone: string | null;
  /** The token of the session's cookie. */
  readonly token: string;
  readonly organizations: readonly OrganizationOfUser[];
  /** The selected organization with the user's role in it; null for a user without organizations. */
  readonly organization: OrganizationOfUser | null;
  /** The flash message of the change that redirected here. */
  readonly flash: string | null;
  /** True if the user has set up a second factor. */
  readonly hasSecondFactor: boolean;
  /** True if the session started with a sign-in by OpenID Connect. */
  readonly byOidc: boolean;
  /** True if that sign-in is recent enough for an organization that requires it. */
  readonly isOidcFresh: boolean;
}

/** A request by a member of an organization, for a page of that organization. */
export interface Context<Query = unknown> extends Visit<Query> {
  readonly session: SignedIn;
  readonly user: User;
  readonly organization: OrganizationOfUser;
  readonly role: Role;
}

/** Returns the time zone in which the user reads and enters times. */
export function zoneOf({ session, browserTimeZone }: Context): string {
  return session.timeZone ?? browserTimeZone ?? 'UTC';
}

/**
 * Returns the time zone in which a form was shown: its hidden field `time_zone` contains it, because the user may have changed the
 * time zone meanwhile.
 */
export function zoneOfForm(context: Context, formZone: string | undefined): string {
  return findTimeZone(formZone ?? '') ?? zoneOf(context);
}

export function idOf({ params }: Visit): string {
  return params['id'] ?? '';
}

/** Returns the path of the page without its query string. */
export function pathOf({ url }: Visit): string {
  return url.split('?')[0] ?? '';
}

/** HTML that JSX has escaped. */
export type Html = JSX.Element;

export class Redirect {
  readonly to: string;
  readonly options: RedirectOptions;

  constructor(to: string, options: RedirectOptions = {}) {
    this.to = to;
    this.options = options;
  }
}
interface RedirectOptions {
  /** The flash message on that page. */
  readonly flash?: string;
  /** A new token for the session cookie; null removes the cookie. */
  readonly token?: string | null;
  /** A new token for the known-browser cookie. */
  readonly browser?: string;
  /** The sealed cookie of a sign-in at the identity provider; null removes it. */
  readonly oidcFlow?: string | null;
}

/** A response with its own status or headers, such as a download. */
export class Reply {
  readonly body: Html | Buffer | Readable;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(body: Reply['body'], { status = 200, headers = {} }: Partial<Pick<Reply, 'status' | 'headers'>> = {}) {
    this.body = body;
    this.status = status;
    this.headers = headers;
  }
}

export type PageResponse = Html | Redirect | Reply;

/** The input of a form that is shown again after an error. */
export interface FormState {
  readonly input: FormInput;
  /** Problems by field; problems of the whole form are under `''`. */
  readonly problems: Problems;
}

interface Action<C, S extends TObject> {
  /** Shows the form again with its problems; without it, the error page is shown. */
  readonly renderForm?: (context: C, formState: FormState) => Html | Promise<Html>;
  readonly run: (context: C, form: Static<S>) => Promise<PageResponse>;
  /** The limit of the body in bytes; 100 kB by default. */
  readonly bodyLimit?: number;
}

export interface Page<For extends 'visitors' | 'members' = 'visitors' | 'members'> {
  readonly isFor: For;
  readonly query: TObject;
  readonly form?: TObject;
  readonly bodyLimit?: number;
  readonly renderForm?: (context: never, formState: FormState) => Html | Promise<Html>;
  readonly run: (context: never, form: never) => Promise<PageResponse>;
}

/**
 * A row of the route table. The access is the role that a page requires; `public` pages need no session. An `expensive` page has
 * statements that may take seconds: an organization gets few of them at a time.
 */
export type PageRow =
  | readonly [method: 'GET' | 'POST', path: string, access: 'public', page: Page<'visitors'>]
  | readonly [method: 'GET' | 'POST', path: string, access: Role, page: Page<'members'>, cost?: 'expensive'];

const NOTHING = Type.Object({});

/** Defines a page of an organization. @param query the schema of its query string; unknown parameters are ignored */
export function page<Q extends TObject>(
  query: Q,
  run: (context: Context<Static<Q>>) => Promise<PageResponse>,
): Page<'members'> {
  return { isFor: 'members', query, run };
}

export function action<S extends TObject>(form: S, does: Action<Context, S>): Page<'members'> {
  return { isFor: 'members', query: NOTHING, form, ...does };
}

export function publicPage<Q extends TObject>(
  query: Q,
  run: (visit: Visit<Static<Q>>) => Promise<PageResponse>,
): Page<'visitors'> {
  return { isFor: 'visitors', query, run };
}

export function publicAction<S extends TObject>(form: S, does: Action<Visit, S>): Page<'visitors'> {
  return { isFor: 'visitors', query: NOTHING, form, ...does };
}

export function baseUrlOf(request: FastifyRequest, publicUrl: string | undefined): string {
  return publicUrl ?? `${request.protocol}://${request.host}`;
}
