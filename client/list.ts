import type { Answer, Item, ListName, Path } from './api.ts';
import type { Call, RequestParts } from './http.ts';

/** A paginated list: `for await` iterates over all items, `page` requests one page. */
export interface List<P extends Path> extends AsyncIterable<Item<P>> {
  readonly page: () => Promise<Answer<P>>;
}

/** @param name the field of a page that contains its items */
export function makeList<P extends Path>(
  call: Call,
  path: P,
  name: ListName<P>,
  parts: RequestParts<P, 'get'>,
): List<P> {
  return {
    page: () => call('get', path, parts),
    async *[Symbol.asyncIterator]() {
      let query: object | undefined = parts.query;
      for (;;) {
        const page = await call('get', path, { ...parts, query } as RequestParts<P, 'get'>);
        yield* page[name] as Iterable<Item<P>>;
        const { next_cursor: cursor } = page as { next_cursor: string | null };
        if (cursor === null) return;
        query = { ...query, cursor };
      }
    },
  };
}
