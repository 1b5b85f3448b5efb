import type { IncomingMessage } from 'node:http';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest, HTTPMethods, RawServerDefault, RouteGenericInterface } from 'fastify';
import type { TSchema } from 'typebox';
import { Type } from 'typebox';
import type { RouteDeps } from './deps.ts';
import type { Scope } from './plugins/auth.ts';

/** The schema of a route, for validation and for the API description. */
export interface RouteSchema {
  /** The operation's name in generated clients. The API description contains only routes with a name. */
  readonly operationId?: string;
  readonly summary?: string;
  readonly description?: string;
  readonly params?: TSchema;
  readonly querystring?: TSchema;
  /** The request headers that the route describes: Idempotency-Key, or none. */
  readonly headers?: TSchema;
  readonly body?: TSchema;
  readonly response?: Readonly<Record<number, TSchema>>;
}

export type TypedRequest<S extends RouteSchema> = FastifyRequest<
  RouteGenericInterface,
  RawServerDefault,
  IncomingMessage,
  S,
  TypeBoxTypeProvider
>;

export type Guard = (deps: RouteDeps, request: FastifyRequest) => void;

interface RouteOptions {
  /** Authenticates callers of a public route before the body is read. Throws ServiceError. */
  readonly guard?: Guard;
  /** Calls the handler even if validation fails, with `validationError` set. */
  readonly attachValidation?: boolean;
  /**
   * How a public route uses the rate limit of the caller's network: each request takes a token, or only each failed
   * authentication (401) does.
   */
  readonly networkLimit?: 'requests' | 'failures';
  /** The largest accepted body, if smaller than on other routes. */
  readonly bodyLimit?: number;
  /** A page for browsers: it accepts any body, and its errors are pages. */
  readonly isPage?: true;
  /** The handler gets the body as raw bytes of any content type. */
  readonly isRaw?: true;
}

export interface Route extends RouteOptions {
  readonly schema: RouteSchema;
  readonly handler: (deps: RouteDeps, request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;
}

/** One row of the route table in `app.ts`. */
export type RouteRow = readonly [method: HTTPMethods, url: string, scope: Scope, route: Route];

/**
 * Creates a route whose handler types follow from its schema. It responds with the lowest status of the schema's responses,
 * unless the handler sets another one. Query parameters that the schema does not list are refused.
 */
export function route<S extends RouteSchema>(
  schema: S,
  handler: (deps: RouteDeps, request: TypedRequest<S>, reply: FastifyReply) => Promise<unknown>,
  options: RouteOptions = {},
): Route {
  // Validation guarantees the schema's types before the handler runs.
  return { schema: { querystring: NO_QUERY, ...schema }, handler: handler as unknown as Route['handler'], ...options };
}

const NO_QUERY = Type.Object({}, { additionalProperties: false });
