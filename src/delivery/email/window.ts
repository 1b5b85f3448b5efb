/**
 * Runs deliveries concurrently and counts their unfinished emails.
 * @param overlap unfinished emails beside which another delivery may begin
 */
export function makeWindow(overlap: number) {
  const running: Promise<void>[] = [];
  let unfinished = 0;
  let failed = false;
  let wake = (): void => undefined;
  const finish = (count: number): void => {
    unfinished -= count;
    if (unfinished <= overlap) wake();
  };
  return {
    /** Waits until few enough are unfinished. Rejects when a delivery has failed, once all have ended. */
    async hasRoom(): Promise<void> {
      while (unfinished > overlap && !failed) await new Promise<void>((resolve) => (wake = resolve));
      if (failed) await this.end();
    },
    run(count: number, work: (onResults: (count: number) => void) => Promise<void>): void {
      unfinished += count;
      let left = count;
      const onResults = (some: number): void => {
        // Without an overlap the next delivery begins when this one has returned all its results.
        const now = overlap === 0 ? 0 : Math.min(some, left);
        left -= now;
        finish(now);
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
      await Promise.allSettled(running);
      await Promise.all(running);
    },
  };
}
