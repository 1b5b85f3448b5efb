/** Requests to Temporal under way at a time. */
const AT_A_TIME = 10;

/** Does something for each item, ten at a time. Rejects with the first failure, after what was under way. */
export async function eachOf<T>(items: Iterable<T>, act: (item: T) => Promise<void>): Promise<void> {
  const left = items[Symbol.iterator]();
  const work = async (): Promise<void> => {
    for (let next = left.next(); !next.done; next = left.next()) await act(next.value);
  };
  const results = await Promise.allSettled(Array.from({ length: AT_A_TIME }, work));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
