import { setImmediate } from 'node:timers/promises';

/** Time for which one request may block the event loop. */
const SLICE = 10;

/**
 * Splits long work into time slices. Await the result of the returned function between two steps: once per slice it yields
 * to other requests.
 */
export function takeTurns(): () => Promise<void> | undefined {
  let until = performance.now() + SLICE;
  const turn = async (): Promise<void> => {
    await setImmediate();
    until = performance.now() + SLICE;
  };
  return () => (performance.now() < until ? undefined : turn());
}
