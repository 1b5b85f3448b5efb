/** Concurrent requests to Temporal. */
const MAX_CONCURRENT = 10;

/** Calls `act` for each item, ten at a time. Rejects with the first failure once all running calls have ended. */
export async function eachOf<T>(items: Iterable<T>, act: (item: T) => Promise<void>): Promise<void> {
  const left = items[Symbol.iterator]();
  const work = async (): Promise<void> => {
    for (let next = left.next(); !next.done; next = left.next()) await act(next.value);
  };
  const results = await Promise.allSettled(Array.from({ length: MAX_CONCURRENT }, work));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
