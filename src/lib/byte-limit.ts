/**
 * Bounds the bytes that concurrent work holds in memory. A weighted semaphore with a share for each holder; published
 * ones (async-mutex, semaphore-async-await) have weights but no shares.
 */
export interface ByteLimit {
  /**
   * Waits until this many bytes may be held. They count as held until `release` is called.
   * @param bytes more than one holder's share counts as the whole share
   */
  readonly take: (bytes: number, options?: TakeOptions) => Promise<Release>;
  /** Takes the bytes if that is possible without waiting or overtaking; undefined otherwise. */
  readonly tryTake: (bytes: number, holder?: string) => Release | undefined;
  /** Returns true if a holder within its share waits for bytes that others hold. */
  readonly isContended: () => boolean;
}

export interface TakeOptions {
  /** Aborts the wait with its reason. */
  readonly signal?: AbortSignal;
  /** The holder whose share the bytes count against; undefined counts against none. */
  readonly holder?: string | undefined;
}

/** Returns the bytes. A second call does nothing. */
export type Release = () => void;

interface Waiter {
  readonly bytes: number;
  readonly holder: string | undefined;
  readonly begin: () => void;
  /** Bytes granted to later waiters while this one did not fit. */
  overtakenBytes: number;
}

/**
 * Grants bytes in the order of the calls, with two exceptions. A holder at its own share is skipped. A request that does
 * not fit is skipped for later ones that do, until they have been granted `capacity` bytes in total: so a large request
 * delays small ones only briefly, and small ones cannot starve a large one.
 * @param capacity bytes that may be held at a time
 * @param share bytes that one holder may hold
 */
export function makeByteLimit(capacity: number, share = capacity): ByteLimit {
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
  const isWithinShare = ({ bytes, holder }: Pick<Waiter, 'bytes' | 'holder'>): boolean =>
    heldBy(holder) + bytes <= share;
  const grant = (): void => {
    const overtaken: Waiter[] = [];
    for (const next of [...queue]) {
      if (free <= 0) return;
      if (!isWithinShare(next)) continue;
      if (next.bytes > free) {
        if (next.overtakenBytes >= capacity) return;
        overtaken.push(next);
        continue;
      }
      queue.splice(queue.indexOf(next), 1);
      for (const each of overtaken) each.overtakenBytes += next.bytes;
      change(next.holder, next.bytes);
      next.begin();
    }
  };
  const releaseOf = (bytes: number, holder: string | undefined): Release => {
    let held = bytes;
    return () => {
      change(holder, -held);
      held = 0;
      grant();
    };
  };

  return {
    async take(requested, { signal, holder } = {}) {
      signal?.throwIfAborted();
      const bytes = Math.min(requested, share);
      return new Promise((resolve, reject) => {
        const waiter: Waiter = {
          bytes,
          holder,
          overtakenBytes: 0,
          begin: () => {
            signal?.removeEventListener('abort', giveUp);
            resolve(releaseOf(bytes, holder));
          },
        };
        const giveUp = (): void => {
          queue.splice(queue.indexOf(waiter), 1);
          reject(signal?.reason as Error);
          // Later waiters may need less.
          grant();
        };
        signal?.addEventListener('abort', giveUp, { once: true });
        queue.push(waiter);
        grant();
      });
    },
    tryTake(requested, holder) {
      const bytes = Math.min(requested, share);
      if (bytes > free || !isWithinShare({ bytes, holder }) || queue.some(isWithinShare)) return undefined;
      change(holder, bytes);
      return releaseOf(bytes, holder);
    },
    isContended: () => queue.some(isWithinShare),
  };
}
