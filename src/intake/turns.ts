import { setImmediate } from 'node:timers/promises';

/** Milliseconds for which one request may keep the event loop to itself. */
const SLICE = 10;

/**
 * Cuts long work into slices. The function it returns is called between two steps; what it answers now and then is
 * awaited before the next step, while other requests have their turn.
 */
export function takeTurns(): () => Promise<void> | undefined {
  let until = performance.now() + SLICE;
  const turn = async (): Promise<void> => {
    await setImmediate();
    until = performance.now() + SLICE;
  };
  return () => (performance.now() < until ? undefined : turn());
}
