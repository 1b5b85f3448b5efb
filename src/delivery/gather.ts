/** Collects items that arrive within a short time of each other and handles them together. */
export interface Gatherer<T> {
  readonly add: (item: T) => void;
  /** Handles the remaining items. Rejects if any handling failed. */
  readonly end: () => Promise<void>;
}

export function makeGatherer<T>(delayMs: number, handle: (items: readonly T[]) => Promise<void>): Gatherer<T> {
  let items: T[] = [];
  let timer: NodeJS.Timeout | undefined;
  const handled: Promise<PromiseSettledResult<void>[]>[] = [];
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (items.length === 0) return;
    handled.push(Promise.allSettled([handle(items)]));
    items = [];
  };
  return {
    add(item) {
      items.push(item);
      timer ??= setTimeout(flush, delayMs);
    },
    async end() {
      flush();
      const results = (await Promise.all(handled)).flat();
      const failure = results.find((result) => result.status === 'rejected');
      if (failure) throw failure.reason;
    },
  };
}
