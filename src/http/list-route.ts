import { PAGE_LENGTH } from '../domain/limits.ts';
import type { SecretKeys } from '../lib/secret-key.ts';
import { cutPage, type Cursor } from '../store/postgres/page.ts';
import { type Listing, makeCursors } from './cursor.ts';
import { callerOf } from './plugins/auth.ts';
import { type Route, route, type RouteSchema, type TypedRequest } from './route.ts';

/** The rows of a list: the filters that a cursor is bound to, and the query for the rows after a position. */
interface Selection {
  readonly filters?: Listing['filters'];
  readonly find: (after: Cursor | null, limit: number) => Promise<Cursor[]>;
}

/** Creates a route that returns rows page by page as the field `name`, newest first. */
export function listRoute<S extends RouteSchema>(
  secretKey: SecretKeys,
  name: string,
  schema: S,
  select: (request: TypedRequest<S>) => Selection | Promise<Selection>,
): Route {
  const cursors = makeCursors(secretKey);
  return route(schema, async (request) => {
    const { limit = PAGE_LENGTH, cursor } = request.query as { limit?: number; cursor?: string };
    const { filters = {}, find } = await select(request);
    const listing = { list: name, orgId: callerOf(request).org_id, filters };
    const after = cursor === undefined ? null : cursors.open(listing, cursor);
    const { rows, next } = cutPage(await find(after, limit + 1), limit);
    return { [name]: rows, has_more: next !== null, next_cursor: next && cursors.seal(listing, next) };
  });
}
