import { type TObject, type TProperties, type TSchema, Type } from 'typebox';
import { PAGE_LENGTH } from '../domain/limits.ts';
import { cutPage, type Cursor } from '../store/postgres/page.ts';
import type { Listing } from './cursor.ts';
import type { RouteDeps } from './deps.ts';
import { type Route, route, type RouteSchema, type TypedRequest } from './route.ts';
import { listOf, paging } from './schemas/lists.ts';

type Filters = Listing['filters'];
type Page = ReturnType<typeof cutPage>;

type ListRequest<Query extends TProperties, Params extends TSchema> = TypedRequest<
  RouteSchema & { querystring: TObject<Query>; params: Params }
>;

interface ListSchema<F, Query extends TProperties, Params extends TSchema> extends RouteSchema {
  readonly params?: Params;
  /** The query parameters besides those of every list. */
  readonly filters?: Query;
  /** Returns the filters of a request. A cursor is bound to them. */
  readonly filtersOf?: (request: ListRequest<Query, Params>, deps: RouteDeps) => F | Promise<F>;
}

/**
 * Creates a route that returns rows page by page as the field `name`, newest first.
 * @param read returns at most `limit` rows after a position, which is one more than the page has; or the page itself, for
 *   lists whose pages may hold fewer rows than asked for
 */
export function listRoute<F extends Filters, Query extends TProperties, Params extends TSchema>(
  name: string,
  item: TSchema & { title?: string },
  { filters: properties, filtersOf, ...schema }: ListSchema<F, Query, Params>,
  read: (
    deps: RouteDeps,
    request: ListRequest<Query, Params>,
    after: Cursor | null,
    limit: number,
    filters: F,
  ) => Promise<Cursor[] | Page>,
): Route {
  const querystring = Type.Object({ ...properties, ...paging }, { additionalProperties: false });
  return route({ ...schema, querystring, response: { 200: listOf(name, item) } }, async (deps, untyped) => {
    const { limit = PAGE_LENGTH, cursor } = untyped.query;
    const request = untyped as unknown as ListRequest<Query, Params>;
    const filters = ((await filtersOf?.(request, deps)) ?? {}) as F;
    const listing = { list: name, orgId: request.orgId, filters };
    const after = cursor === undefined ? null : deps.cursors.open(listing, cursor);
    const found = await read(deps, request, after, limit + 1, filters);
    const { rows, next } = Array.isArray(found) ? cutPage(found, limit) : found;
    return { [name]: rows, has_more: next !== null, next_cursor: next && deps.cursors.seal(listing, next) };
  });
}
