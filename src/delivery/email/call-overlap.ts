import { awaitAll } from '../../lib/await-all.ts';
import type { OnResults } from '../call.ts';

/**
 * Limits the concurrency of deliveries by their unfinished emails.
 * @param overlap another delivery may start while at most this many emails are unfinished
 */
export function makeCallOverlap(overlap: number) {
  const running: Promise<void>[] = [];
  let unfinished = 0;
  let failed = false;
  let wake = (): void => undefined;
  const finish = (count: number): void => {
    unfinished -= count;
    if (unfinished <= overlap) wake();
  };
  return {
    /** Waits until another delivery may start. If one has failed, rejects once all have ended. */
    async waitForCapacity(): Promise<void> {
      while (unfinished > overlap && !failed) await new Promise<void>((resolve) => (wake = resolve));
      if (failed) await this.end();
    },
    /** Starts a delivery of `count` emails. `work` reports finished emails to `onResults`; the others are finished when it ends. */
    run(count: number, work: (onResults: OnResults) => Promise<void>): void {
      unfinished += count;
      let left = count;
      const onResults = (resultCount: number): void => {
        // Without an overlap the next delivery starts when this one has returned all its results.
        const finishedCount = overlap === 0 ? 0 : Math.min(resultCount, left);
        left -= finishedCount;
        finish(finishedCount);
      };
      const run = work(onResults)
        .catch((error: unknown) => {
          failed = true;
          throw error;
        })
        .finally(() => finish(left));
      // Its rejection is reported by `end`.
      run.catch(() => undefined);
      running.push(run);
    },
    async end(): Promise<void> {
      await awaitAll(running);
    },
  };
}
