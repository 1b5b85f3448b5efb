import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Runs `step` repeatedly, with a pause of `intervalMs` after each run.
 * @param onError called for the first of consecutive failures; the loop continues
 * @returns stops the loop; resolves when the current step has ended
 */
export function startLoop(
  intervalMs: number,
  step: (signal: AbortSignal) => Promise<void>,
  onError: (error: unknown) => void,
): () => Promise<void> {
  const stopping = new AbortController();
  const run = async (): Promise<void> => {
    for (let failures = 0; !stopping.signal.aborted;) {
      try {
        await step(stopping.signal);
        failures = 0;
      } catch (error) {
        if (failures++ === 0) onError(error);
      }
      await sleep(intervalMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  };
  const running = run();
  return () => {
    stopping.abort();
    return running;
  };
}
