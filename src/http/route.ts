import type { IncomingMessage } from 'node:http';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest, HTTPMethods, RawServerDefault, RouteGenericInterface } from 'fastify';
import type { TSchema } from 'typebox';
import { Type } from 'typebox';
import type { Scope } from './plugins/auth.ts';

/** What a route takes and gives, for validation and for the API description alike. */
export interface RouteSchema {
  /** Names the operation in generated clients. */
  readonly operationId?: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly params?: TSchema;
  readonly querystring?: TSchema;
  /** The headers of its own that a route looks at: Idempotency-Key, or none. */
  readonly headers?: TSchema;
  readonly body?: TSchema;
  readonly response?: Readonly<Record<number, TSchema>>;
  /** Left out of the API description. */
  readonly hide?: boolean;
}

type TypedRequest<S extends RouteSchema> = FastifyRequest<
  RouteGenericInterface,
  RawServerDefault,
  IncomingMessage,
  S,
  TypeBoxTypeProvider
>;

export type Guard = (request: FastifyRequest) => void;

export interface Route {
  readonly schema: RouteSchema;
  /** A check of its own, on a public route, before a byte of the body is read. Throws ServiceError. */
  readonly guard?: Guard;
  /** Whether the handler is called although the schema refuses the request, and finds `validationError` set. */
  readonly attachValidation?: boolean;
  /**
   * What a public route asks of the limit of the caller's network: a token for every request, or only that there is one,
   * since a wrong credential (401) takes it later.
   */
  readonly networkLimit?: 'requests' | 'failures';
  /** Bytes of the largest body that it takes, when that is less than others take. */
  readonly bodyLimit?: number;
  /** Whether people open it in a browser: it takes any body, and its errors are pages. */
  readonly isPage?: true;
  /** Whether its body is the bytes that came, of any type. */
  readonly isRaw?: true;
  readonly handler: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;
}

/** One row of the route table in `app.ts`. */
export type RouteRow = readonly [method: HTTPMethods, url: string, scope: Scope, route: Route];

/** A route whose handler's types follow from its schema. Query parameters that it does not name are refused. */
export function route<S extends RouteSchema>(
  schema: S,
  handler: (request: TypedRequest<S>, reply: FastifyReply) => Promise<unknown>,
  guard?: Guard,
): Route {
  return {
    schema: { querystring: NO_QUERY, ...schema },
    // The schema's types are what validation makes sure of before the handler runs.
    handler: handler as unknown as Route['handler'],
    ...(guard && { guard }),
  };
}

const NO_QUERY = Type.Object({}, { additionalProperties: false });
