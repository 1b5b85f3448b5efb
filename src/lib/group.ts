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
