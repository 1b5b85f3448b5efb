import { type TObject, type TProperties, type TSchema, Type } from 'typebox';
import { PAGE_LENGTH } from '../domain/limits.ts';
import { type Cursor, cutPage, type Page } from '../store/postgres/page.ts';
import type { Listing } from './cursor.ts';
import type { RouteDeps } from './deps.ts';
import { type Route, route, type TypedRequest } from './route.ts';
import { listOf, paging } from './schemas/lists.ts';

type Filters = Listing['filters'];

type ListRequest<Query extends TProperties, Params extends TSchema> = TypedRequest<{
  querystring: TObject<Query>;
  params: Params;
}>;

interface List<F, Query extends TProperties, Params extends TSchema> {
  /** The field of the response that contains the rows. */
  readonly name: string;
  readonly item: TSchema & { title?: string };
  readonly description: string;
  readonly params?: Params;
  /** The query parameters in addition to those of every list. */
  readonly filters?: Query;
  /** Returns the filters of a request. A cursor is valid only with the same filters. */
  readonly filtersOf?: (request: ListRequest<Query, Params>, deps: RouteDeps) => F | Promise<F>;
}

/** Reads the rows after a position. */
type Reader<F, Query extends TProperties, Params extends TSchema> =
  /** Returns at most `limit` rows. `limit` is one more than the page length, which shows whether more rows follow. */
  | { readonly read: Read<F, Query, Params, Cursor[]>; readonly readPage?: never }
  /** Returns a page of at most `limit` rows. The page may be shorter even if more rows follow. */
  | { readonly readPage: Read<F, Query, Params, Page<unknown>>; readonly read?: never };

type Read<F, Query extends TProperties, Params extends TSchema, Result> = (
  deps: RouteDeps,
  request: ListRequest<Query, Params>,
  after: Cursor | null,
  limit: number,
  filters: F,
) => Promise<Result>;

/** Creates a route that lists rows in pages, newest first. */
export function listRoute<F extends Filters, Query extends TProperties, Params extends TSchema>(
  operationId: string,
  summary: string,
  {
    name,
    item,
    filters: properties,
    filtersOf,
    read,
    readPage,
    ...schema
  }: List<F, Query, Params> & Reader<F, Query, Params>,
): Route {
  return route(operationId, summary, {
    ...schema,
    querystring: Type.Object({ ...properties, ...paging }, { additionalProperties: false }),
    response: { 200: listOf(name, item) },
    handler: async (deps, untyped) => {
      const { limit = PAGE_LENGTH, cursor } = untyped.query;
      const request = untyped as unknown as ListRequest<Query, Params>;
      const filters = ((await filtersOf?.(request, deps)) ?? {}) as F;
      const listing = { list: name, orgId: request.orgId, filters };
      const after = cursor === undefined ? null : deps.cursors.open(listing, cursor);
      const { rows, next } = readPage
        ? await readPage(deps, request, after, limit, filters)
        : cutPage(await read(deps, request, after, limit + 1, filters), limit);
      return { [name]: rows, has_more: next !== null, next_cursor: next && deps.cursors.seal(listing, next) };
    },
  });
}
