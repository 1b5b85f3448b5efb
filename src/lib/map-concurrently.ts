/**
 * Maps items by an asynchronous function, with at most `limit` calls at a time. A failure does not prevent the other calls.
 * @returns the results in the order of the items; rejects with the first failure after all calls have ended
 */
export async function mapConcurrently<T, R>(
  items: Iterable<T>,
  limit: number,
  map: (item: T) => Promise<R>,
): Promise<R[]> {
  const entries = [...items].entries();
  const results: R[] = [];
  const failures: unknown[] = [];
  const work = async (): Promise<void> => {
    for (const [index, item] of entries) {
      try {
        results[index] = await map(item);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: limit }, work));
  if (failures.length > 0) throw failures[0] as Error;
  return results;
}
