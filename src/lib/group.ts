/** Groups items by a key. Keys and items keep their order. */
export function groupBy<K, T>(items: Iterable<T>, key: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const itsKey = key(item);
    const group = groups.get(itsKey);
    if (group) group.push(item);
    else groups.set(itsKey, [item]);
  }
  return groups;
}

/** Splits items into chunks of at most `size`, in order. */
export function chunksOf<T>(items: readonly T[], size: number): T[][] {
  const count = Math.ceil(items.length / size);
  return Array.from({ length: count }, (_, index) => items.slice(index * size, (index + 1) * size));
}
