import { setTimeout as sleep } from 'node:timers/promises';
import { isUnreachable } from './pool.ts';

interface Item<T, R> {
  readonly item: T;
  readonly resolve: (result: R) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Writes single items in groups: those that arrive during a write share the next one, with its round trip and commit. Two
 * concurrent writes would be smaller and cost more. If a group fails for a reason other than an unreachable database, its
 * items are written one by one.
 * @param write writes all of the items or none; returns the results in their order
 * @param onIdle called when nothing is left to write
 * @param delayMs the first write waits this long for further items
 * @returns writes one item; resolves with its result after the commit
 */
export function gather<T, R>(
  write: (items: readonly T[]) => Promise<readonly R[]>,
  maxItems: number,
  onIdle?: () => void,
  delayMs = 0,
): (item: T) => Promise<R> {
  let pending: Item<T, R>[] = [];
  let isWriting = false;

  const run = async (): Promise<void> => {
    isWriting = true;
    if (delayMs > 0) await sleep(delayMs);
    while (pending.length > 0) {
      const group = pending.slice(0, maxItems);
      pending = pending.slice(maxItems);
      await writeGroup(write, group);
    }
    isWriting = false;
    onIdle?.();
  };

  return (item) =>
    new Promise((resolve, reject) => {
      pending.push({ item, resolve, reject });
      if (!isWriting) void run();
    });
}

/** Never rejects; each item's promise is settled. */
async function writeGroup<T, R>(
  write: (items: readonly T[]) => Promise<readonly R[]>,
  group: readonly Item<T, R>[],
): Promise<void> {
  try {
    const results = await write(group.map(({ item }) => item));
    for (const [index, { resolve }] of group.entries()) resolve(results[index] as R);
  } catch (error) {
    if (group.length === 1 || isUnreachable(error)) for (const { reject } of group) reject(error);
    else for (const each of group) await writeGroup(write, [each]);
  }
}
