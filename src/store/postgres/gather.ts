import { isUnreachable } from './pool.ts';

interface Waiting<T, R> {
  readonly item: T;
  readonly resolve: (result: R) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Writes items that come one by one, but those that come while others are being written share a write, and so its round
 * trip and its commit: one write at a time, since two at once are shorter and cost more. An item that cannot be written does not take the others along: they are then written one by one.
 * @param write all of the items or none; its results are in their order
 * @param atOnce items of one write at most
 * @param onIdle told when nothing is left to write
 * @returns writes one item; resolves with its result when it is committed
 */
export function gather<T, R>(
  write: (items: readonly T[]) => Promise<readonly R[]>,
  atOnce: number,
  onIdle?: () => void,
): (item: T) => Promise<R> {
  let waiting: Waiting<T, R>[] = [];
  let isWriting = false;

  const run = async (): Promise<void> => {
    isWriting = true;
    while (waiting.length > 0) {
      const taken = waiting.slice(0, atOnce);
      waiting = waiting.slice(atOnce);
      await writeTogether(write, taken);
    }
    isWriting = false;
    onIdle?.();
  };

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      if (!isWriting) void run();
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
