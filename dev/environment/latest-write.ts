/** Writes one value at a time and skips outdated ones, for a file that contains the current state. */
interface LatestWrite<T> {
  readonly write: (value: T) => void;
  /** Resolves when nothing is pending; rejects if a write has failed since the last call. */
  readonly settled: () => Promise<void>;
}

export function makeLatestWrite<T>(writeOne: (value: T) => Promise<void>): LatestWrite<T> {
  let waiting: [T] | undefined;
  let running: Promise<void> | undefined;
  let failed: [unknown] | undefined;

  async function writeAll(): Promise<void> {
    for (let next = waiting; next; next = waiting) {
      waiting = undefined;
      await writeOne(next[0]).catch((error: unknown) => (failed = [error]));
    }
    running = undefined;
  }

  return {
    write(value) {
      waiting = [value];
      running ??= writeAll();
    },
    async settled() {
      await running;
      const error = failed;
      failed = undefined;
      if (error) throw error[0];
    },
  };
}
