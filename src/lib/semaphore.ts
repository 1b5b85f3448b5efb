export type Semaphore = ReturnType<typeof makeSemaphore>;

interface TakeOptions {
  /** Aborts the wait with its reason. */
  readonly signal?: AbortSignal;
  /** The holder whose share the permits count against; undefined counts against none. */
  readonly holder?: string | undefined;
}

/** Returns the permits. A second call does nothing. */
export type Release = () => void;

interface Waiter {
  readonly permits: number;
  readonly holder: string | undefined;
  readonly begin: () => void;
  /** Permits granted to later waiters while this one did not fit. */
  overtakenPermits: number;
}

/**
 * Limits the memory (bytes) or slots that concurrent work holds. It is a weighted semaphore with a share for each holder;
 * published packages (async-mutex, semaphore-async-await) have weights but no shares.
 * Grants permits in FIFO order, with two exceptions. A holder at its own share is skipped. A request that exceeds the free
 * permits is skipped for later ones that fit, until these have been granted `capacity` permits in total. So a large request
 * delays small ones only briefly, and small ones cannot starve a large one.
 * @param capacity the maximum number of permits in use
 * @param share the maximum number of permits of one holder
 * @param shareAlone the same while no other holder has permits; at least `share`
 */
export function makeSemaphore(capacity: number, share = capacity, shareAlone = share) {
  const queue: Waiter[] = [];
  const holders = new Map<string, number>();
  let free = capacity;

  const heldBy = (holder: string | undefined): number => (holder === undefined ? 0 : (holders.get(holder) ?? 0));
  const change = (holder: string | undefined, by: number): void => {
    free -= by;
    if (holder === undefined) return;
    const held = heldBy(holder) + by;
    if (held > 0) holders.set(holder, held);
    else holders.delete(holder);
  };
  const isWithinShare = ({ permits, holder }: Pick<Waiter, 'permits' | 'holder'>): boolean => {
    const held = heldBy(holder);
    const isAlone = holders.size === (held > 0 ? 1 : 0);
    return held + permits <= (isAlone ? shareAlone : share);
  };
  const grant = (): void => {
    const overtaken: Waiter[] = [];
    for (const next of [...queue]) {
      if (free <= 0) return;
      if (!isWithinShare(next)) continue;
      if (next.permits > free) {
        if (next.overtakenPermits >= capacity) return;
        overtaken.push(next);
        continue;
      }
      queue.splice(queue.indexOf(next), 1);
      for (const each of overtaken) each.overtakenPermits += next.permits;
      change(next.holder, next.permits);
      next.begin();
    }
  };
  const releaseOf = (permits: number, holder: string | undefined): Release => {
    let held = permits;
    return () => {
      change(holder, -held);
      held = 0;
      grant();
    };
  };

  return {
    /**
     * Waits until this many permits are free. They stay in use until the result is called.
     * @param requested is limited to the share of one holder
     */
    async take(requested: number, { signal, holder }: TakeOptions = {}): Promise<Release> {
      signal?.throwIfAborted();
      const permits = Math.min(requested, share);
      return new Promise((resolve, reject) => {
        const waiter: Waiter = {
          permits,
          holder,
          overtakenPermits: 0,
          begin: () => {
            signal?.removeEventListener('abort', giveUp);
            resolve(releaseOf(permits, holder));
          },
        };
        const giveUp = (): void => {
          queue.splice(queue.indexOf(waiter), 1);
          reject(signal?.reason as Error);
          // Later waiters may need fewer permits.
          grant();
        };
        signal?.addEventListener('abort', giveUp, { once: true });
        queue.push(waiter);
        grant();
      });
    },
    /** Takes the permits if they are free and no waiter could get them; otherwise returns undefined. */
    tryTake(requested: number, holder?: string): Release | undefined {
      const permits = Math.min(requested, share);
      if (permits > free || !isWithinShare({ permits, holder }) || queue.some(isWithinShare)) return undefined;
      change(holder, permits);
      return releaseOf(permits, holder);
    },
    /** Returns true if a holder within its share waits for permits that others hold. */
    isContended: () => queue.some(isWithinShare),
  };
}
