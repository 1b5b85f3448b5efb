/** Bounds how many bytes are held in memory at a time by work that waits its turn. */
export interface ByteLimit {
  /**
   * Waits until so many bytes may be held, in the order of asking, and holds them until `release` is called.
   * @param bytes more than one may hold count as all of that
   */
  readonly take: (bytes: number, wish?: Wish) => Promise<Release>;
}

export interface Wish {
  /** Ends the waiting with its reason. */
  readonly signal?: AbortSignal;
  /** For whom: nobody may hold more than a share, so that one who holds for long leaves room for others. */
  readonly holder?: string;
}

/** Gives the bytes back; a second call does nothing. */
export type Release = () => void;

interface Waiting {
  readonly bytes: number;
  readonly holder: string | undefined;
  readonly begin: () => void;
}

/**
 * @param capacity bytes that may be held at a time
 * @param share bytes that one holder may hold of them
 */
export function makeByteLimit(capacity: number, share = capacity): ByteLimit {
  const queue: Waiting[] = [];
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
  const hasRoom = ({ bytes, holder }: Pick<Waiting, 'bytes' | 'holder'>): boolean => heldBy(holder) + bytes <= share;
  const admit = (): void => {
    for (const next of [...queue]) {
      // Who waits for himself holds up nobody behind him; who waits for others is not overtaken.
      if (!hasRoom(next)) continue;
      if (next.bytes > free) return;
      queue.splice(queue.indexOf(next), 1);
      change(next.holder, next.bytes);
      next.begin();
    }
  };
  const releaseOf = (bytes: number, holder: string | undefined): Release => {
    let held = bytes;
    return () => {
      change(holder, -held);
      held = 0;
      admit();
    };
  };

  return {
    async take(wanted, { signal, holder } = {}) {
      signal?.throwIfAborted();
      const bytes = Math.min(wanted, share);
      return new Promise((resolve, reject) => {
        const waiting: Waiting = {
          bytes,
          holder,
          begin: () => {
            signal?.removeEventListener('abort', giveUp);
            resolve(releaseOf(bytes, holder));
          },
        };
        const giveUp = (): void => {
          queue.splice(queue.indexOf(waiting), 1);
          reject(signal?.reason as Error);
          // Whoever stood behind may need less.
          admit();
        };
        signal?.addEventListener('abort', giveUp, { once: true });
        queue.push(waiting);
        admit();
      });
    },
  };
}
