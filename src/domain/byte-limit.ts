/** Bounds how many bytes are held in memory at a time by work that waits its turn. */
export interface ByteLimit {
  /**
   * Waits until so many bytes may be held, in the order of asking, and holds them until `release` is called.
   * @param bytes more than there are in all count as all
   * @param signal ends the waiting with its reason
   */
  readonly take: (bytes: number, signal?: AbortSignal) => Promise<Release>;
}

/** Gives the bytes back; a second call does nothing. */
export type Release = () => void;

interface Waiting {
  readonly bytes: number;
  readonly begin: () => void;
}

/** @param capacity bytes that may be held at a time */
export function makeByteLimit(capacity: number): ByteLimit {
  const queue: Waiting[] = [];
  let free = capacity;

  const admit = (): void => {
    for (let next = queue[0]; next && next.bytes <= free; next = queue[0]) {
      queue.shift();
      free -= next.bytes;
      next.begin();
    }
  };
  const hold = (bytes: number): Release => {
    let held = bytes;
    return () => {
      free += held;
      held = 0;
      admit();
    };
  };

  return {
    async take(wanted, signal) {
      signal?.throwIfAborted();
      const bytes = Math.min(wanted, capacity);
      if (queue.length === 0 && bytes <= free) {
        free -= bytes;
        return hold(bytes);
      }
      return new Promise((resolve, reject) => {
        const waiting: Waiting = {
          bytes,
          begin: () => {
            signal?.removeEventListener('abort', giveUp);
            resolve(hold(bytes));
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
      });
    },
  };
}
