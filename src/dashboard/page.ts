import type { Readable } from 'node:stream';
import type { FastifyBaseLogger, FastifyRequest } from 'fastify';
import type { Static, TObject } from 'typebox';
import { Type } from 'typebox';
import type { ConnectDeps } from '../accounts/chat-numbers.ts';
import type { IntakeDeps } from '../intake/emails.ts';
import type { NetworkLimits } from '../intake/network-limits.ts';
import type { SenderDomainDeps } from '../sender-domains/deps.ts';
import type { Belonging } from '../store/accounts/sessions.ts';
import type { FileStore } from '../store/files/file-store.ts';
import type { Pool } from '../store/postgres/pool.ts';
import type { Role, User } from '../store/accounts/users.ts';
import type { Given, Problems } from './forms.ts';
import type { SecretKeys } from '../lib/secret-key.ts';

/** What pages need besides the database. */
export interface DashboardDeps extends IntakeDeps {
  readonly log: FastifyBaseLogger;
  /** The setting `SECRET_KEY`. */
  readonly secretKey: SecretKeys;
  /** The setting `PUBLIC_URL`; with https, cookies are for https only. */
  readonly publicUrl: string | undefined;
  /** The setting `WEBHOOK_ALLOW_CIDRS`. */
  readonly webhookAllowCidrs: readonly string[];
  /** What visitors without a session may cost. */
  readonly networks: NetworkLimits;
  /** What domains are registered and checked with. */
  readonly senderDomains: SenderDomainDeps;
  /** Where attachments are. */
  readonly files: FileStore;
  /** Asks a provider whether a chat-app number belongs to the account of its token. */
  readonly verifyNumber: ConnectDeps['verifyNumber'];
  /** Where workflows can be looked at, if anybody has said so. */
  readonly temporalUi?: TemporalUi | undefined;
}

/** Temporal's UI: the setting `TEMPORAL_UI_URL`, and the namespace of our workflows. */
export interface TemporalUi {
  readonly url: string;
  readonly namespace: string;
}

/** A request for a page, by whomever. `Query` is what its schema says of the query string. */
export interface Visit<Query = unknown> {
  readonly deps: DashboardDeps;
  readonly pool: Pool;
  /** Where browsers reach us: `https://mail.example.com`, without a slash at its end. */
  readonly baseUrl: string;
  /** Path and query string of this page. */
  readonly url: string;
  /** The visitor's network address. */
  readonly address: string;
  /** The token of a known browser, unchecked. */
  readonly browser: string | undefined;
  readonly requestId: string;
  /** What `:name` stands for in the path. */
  readonly params: Readonly<Record<string, string>>;
  /** Parameters that are valid; one that is not is left out, and told in `problems`. */
  readonly query: Query;
  /** Parameters as they were given, and what is wrong with them. */
  readonly given: Given;
  readonly problems: Problems;
  /** Who is signed in, if anybody. */
  readonly session: SignedIn | null;
  /** The address of a file of assets.ts. */
  readonly asset: (name: string) => string;
}

/** Who is signed in. */
export interface SignedIn {
  readonly user: User;
  /** The token of the session's cookie. */
  readonly token: string;
  readonly organizations: readonly Belonging[];
  /** The organization that is looked at, with the user's role in it; null for a user who is in none. */
  readonly organization: Belonging | null;
  /** What to tell of the change that led here. */
  readonly flash: string | null;
}

/** A request by a member of an organization, for a page of that organization. */
export interface Context<Query = unknown> extends Visit<Query> {
  readonly session: SignedIn;
  readonly user: User;
  /** Everything a page reads or changes is this organization's. */
  readonly organization: Belonging;
  readonly role: Role;
}

/** The `:id` of the page's path. */
export function idOf({ params }: Visit): string {
  return params['id'] ?? '';
}

/** HTML that is safe to send: what JSX makes. */
export type Html = JSX.Element;

/** Leads on to another page after a change. */
export class Redirect {
  readonly to: string;
  /** What that page tells. */
  readonly flash: string | undefined;
  /** A new token for the session's cookie; null takes the cookie away. */
  readonly token: string | null | undefined;
  /** A new token for the cookie of a known browser. */
  readonly browser: string | undefined;

  constructor(to: string, { flash, token, browser }: { flash?: string; token?: string | null; browser?: string } = {}) {
    this.to = to;
    this.flash = flash;
    this.token = token;
    this.browser = browser;
  }
}

/** An answer that is no page of ours, or not with 200: a file to keep, a frame's content, a part of a page. */
export class Reply {
  readonly status: number;
  readonly body: Html | Buffer | Readable;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    body: Html | Buffer | Readable,
    { status = 200, headers = {} }: Partial<Pick<Reply, 'status' | 'headers'>> = {},
  ) {
    this.body = body;
    this.status = status;
    this.headers = headers;
  }
}

export type Answer = Html | Redirect | Reply;

/** What a form was filled in with, for showing it again. */
export interface Filled {
  readonly given: Given;
  /** By field; what concerns the whole is under `''`. */
  readonly problems: Problems;
}

/** A form's fields, and what happens with them. */
interface Action<C, S extends TObject> {
  /** Shows the form again, with what is wrong; without it, a page says so. */
  readonly again?: (context: C, filled: Filled) => Html | Promise<Html>;
  readonly run: (context: C, form: Static<S>) => Promise<Answer>;
  /** Bytes of the largest form; 100 kB by default. */
  readonly bodyLimit?: number;
}

/** What a row of the route table leads to. The handler's types follow from its schemas. */
export interface Page<For extends 'anybody' | 'members' = 'anybody' | 'members'> {
  readonly isFor: For;
  readonly query: TObject;
  readonly form?: TObject;
  readonly bodyLimit?: number;
  readonly again?: (context: never, filled: Filled) => Html | Promise<Html>;
  readonly run: (context: never, form: never) => Promise<Answer>;
}

/** Who may open a page: each role what those before it may. `public` pages are for who is not signed in too. */
export type Access = 'public' | Role;

/** One row of the route table in `app.ts`. */
export type PageRow =
  | readonly [method: 'GET' | 'POST', path: string, access: 'public', page: Page<'anybody'>]
  | readonly [method: 'GET' | 'POST', path: string, access: Role, page: Page<'members'>];

const NOTHING = Type.Object({});

/** A page of an organization. @param query its query string; other parameters are ignored */
export function page<Q extends TObject>(
  query: Q,
  run: (context: Context<Static<Q>>) => Promise<Answer>,
): Page<'members'> {
  return { isFor: 'members', query, run };
}

/** What a form of an organization's page does. */
export function action<S extends TObject>(form: S, does: Action<Context, S>): Page<'members'> {
  return { isFor: 'members', query: NOTHING, form, ...does };
}

/** A page that needs no sign-in. */
export function publicPage<Q extends TObject>(
  query: Q,
  run: (visit: Visit<Static<Q>>) => Promise<Answer>,
): Page<'anybody'> {
  return { isFor: 'anybody', query, run };
}

/** What a form does that needs no sign-in. */
export function publicAction<S extends TObject>(form: S, does: Action<Visit, S>): Page<'anybody'> {
  return { isFor: 'anybody', query: NOTHING, form, ...does };
}

/** The URL on which a request came in, or by which the operator says we are reached. */
export function baseUrlOf(request: FastifyRequest, publicUrl: string | undefined): string {
  return publicUrl ?? `${request.protocol}://${request.host}`;
}
