import type { Answer, Item, ListName, Path } from './api.ts';
import type { Call, Given } from './http.ts';

/** A list of the API, which comes by pages: `for await` goes over all its items, `page` asks for one page. */
export interface List<P extends Path> extends AsyncIterable<Item<P>> {
  readonly page: () => Promise<Answer<P>>;
}

/** @param name under which a page holds its items */
export function makeList<P extends Path>(call: Call, path: P, name: ListName<P>, given: Given<P, 'get'>): List<P> {
  return {
    page: () => call('get', path, given),
    async *[Symbol.asyncIterator]() {
      let query: object | undefined = given.query;
      for (;;) {
        const page = await call('get', path, { ...given, query } as Given<P, 'get'>);
        yield* page[name] as Iterable<Item<P>>;
        const { next_cursor: cursor } = page as { next_cursor: string | null };
        if (cursor === null) return;
        query = { ...query, cursor };
      }
    },
  };
}
