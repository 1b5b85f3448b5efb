import type { IncomingMessage } from 'node:http';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type {
  FastifyReply,
  FastifyRequest,
  FastifySchema,
  HTTPMethods,
  RawServerDefault,
  RouteGenericInterface,
} from 'fastify';
import { type TSchema, Type } from 'typebox';
import type { RouteDeps } from './deps.ts';
import type { Scope } from './plugins/auth.ts';

/** The schema of a route, for validation and for the API description. */
interface RouteSchema {
  /** The API description contains only routes with an operation id. */
  readonly operationId?: string;
  readonly summary?: string;
  readonly description?: string;
  readonly params?: TSchema;
  readonly querystring?: TSchema;
  /** The request headers of the route: only Idempotency-Key. */
  readonly headers?: TSchema;
  readonly body?: TSchema;
  readonly response?: Readonly<Record<number, TSchema>>;
}

export type TypedRequest<S extends FastifySchema> = FastifyRequest<
  RouteGenericInterface,
  RawServerDefault,
  IncomingMessage,
  S,
  TypeBoxTypeProvider
>;

export type Guard = (deps: RouteDeps, request: FastifyRequest) => void;

interface RouteOptions {
  /** Authenticates callers of a public route before the body is read. @throws ServiceError */
  readonly guard?: Guard;
  /** Calls the handler even if validation fails, with `validationError` set. */
  readonly attachValidation?: boolean;
  /**
   * Applies the rate limit of the caller's network to a public route: `requests` takes a token for each request, `failures` takes none
   * and refuses a network that has none left. Each failed authentication (401) on a public route takes a token in any case.
   */
  readonly networkLimit?: 'requests' | 'failures';
  /** The maximum size of a body in bytes, if it is smaller than on other routes. */
  readonly bodyLimit?: number;
  /** The route is a page for browsers: it accepts any body, and its errors are HTML pages. */
  readonly isPage?: true;
  /** The handler gets the body as raw bytes of any content type. */
  readonly isRaw?: true;
}

export interface Route extends RouteOptions {
  readonly schema: RouteSchema;
  readonly handler: (deps: RouteDeps, request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;
}

/**
 * One row of the route table in `app.ts`. An `expensive` route has statements that may take seconds: an organization gets few of them
 * at a time.
 */
export type RouteRow = readonly [method: HTTPMethods, url: string, scope: Scope, route: Route, cost?: 'expensive'];

/** The schema of a route without its operation id and summary, its handler, and its options. */
interface Definition<Params extends TSchema, Query extends TSchema, Body extends TSchema> extends Omit<
  RouteSchema,
  'operationId' | 'summary'
> {
  readonly params?: Params;
  readonly querystring?: Query;
  readonly body?: Body;
  readonly handler: (
    deps: RouteDeps,
    request: TypedRequest<{ params: Params; querystring: Query; body: Body }>,
    reply: FastifyReply,
  ) => Promise<unknown>;
  readonly options?: RouteOptions;
}

/**
 * Creates a route that is not in the API description. The schema determines the handler's types. The status is the lowest one in
 * the schema's responses, unless the handler sets another one. A route without a `querystring` schema refuses query parameters.
 */
export function hiddenRoute<Params extends TSchema, Query extends TSchema, Body extends TSchema>({
  handler,
  options,
  ...schema
}: Definition<Params, Query, Body>): Route {
  // Validation guarantees the schema's types before the handler runs.
  return { schema: { querystring: NO_QUERY, ...schema }, handler: handler as unknown as Route['handler'], ...options };
}

/** Creates a route in the API description. @param operationId its name in generated clients */
export function route<Params extends TSchema, Query extends TSchema, Body extends TSchema>(
  operationId: string,
  summary: string,
  definition: Definition<Params, Query, Body>,
): Route {
  const { schema, ...rest } = hiddenRoute(definition);
  return { schema: { operationId, summary, ...schema }, ...rest };
}

const NO_QUERY = Type.Object({}, { additionalProperties: false });
