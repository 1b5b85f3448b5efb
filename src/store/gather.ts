import { isUnreachable } from './pool.ts';

/** How many are written at a time. */
export interface GatherLimits {
  /** In one write, at most. */
  readonly atOnce: number;
  /** Writes under way: while one waits for its commit, the next is filled. */
  readonly writers: number;
}

interface Waiting<T, R> {
  readonly item: T;
  readonly resolve: (result: R) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Writes items that come one by one, but those that come while others are being written share a write, and so its round
 * trip and its commit. An item that cannot be written does not take the others along: they are then written one by one.
 * @param write all of the items or none; its results are in their order
 * @param onIdle told when nothing is left to write
 * @returns writes one item; resolves with its result when it is committed
 */
export function gather<T, R>(
  write: (items: readonly T[]) => Promise<readonly R[]>,
  { atOnce, writers }: GatherLimits,
  onIdle?: () => void,
): (item: T) => Promise<R> {
  let waiting: Waiting<T, R>[] = [];
  let writing = 0;

  const run = async (): Promise<void> => {
    writing++;
    while (waiting.length > 0) {
      const taken = waiting.slice(0, atOnce);
      waiting = waiting.slice(atOnce);
      await writeTogether(write, taken);
    }
    writing--;
    if (writing === 0) onIdle?.();
  };

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      if (writing < writers) void run();
    });
}

/** Never rejects: each of them is told. */
async function writeTogether<T, R>(
  write: (items: readonly T[]) => Promise<readonly R[]>,
  taken: readonly Waiting<T, R>[],
): Promise<void> {
  try {
    const results = await write(taken.map(({ item }) => item));
    for (const [index, { resolve }] of taken.entries()) resolve(results[index] as R);
  } catch (error) {
    if (taken.length === 1 || isUnreachable(error)) for (const { reject } of taken) reject(error);
    else for (const each of taken) await writeTogether(write, [each]);
  }
}
