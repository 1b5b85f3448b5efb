import { setImmediate } from 'node:timers/promises';

/** The maximum time that one request may block the event loop. */
const SLICE_MS = 10;

/**
 * Splits long work into time slices. Await the returned function between two steps: at the end of a slice it yields to other
 * requests.
 */
export function startTimeSlices(): () => Promise<void> | undefined {
  let sliceEnd = performance.now() + SLICE_MS;
  const nextSlice = async (): Promise<void> => {
    await setImmediate();
    sliceEnd = performance.now() + SLICE_MS;
  };
  return () => (performance.now() < sliceEnd ? undefined : nextSlice());
}

/** Maps items in their order, in time slices. */
export async function mapInSlices<T, R>(items: readonly T[], map: (item: T) => R): Promise<R[]> {
  const results: R[] = [];
  const yieldIfDue = startTimeSlices();
  for (const item of items) {
    results.push(map(item));
    await yieldIfDue();
  }
  return results;
}
