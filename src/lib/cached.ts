/** Calls `load` at most once within `ttlMs`. Callers share the result, also a failure. */
export function cacheFor<T>(ttlMs: number, load: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  let loadedAt = -Infinity;
  return () => {
    if (!result || performance.now() - loadedAt > ttlMs) {
      loadedAt = performance.now();
      result = load();
    }
    return result;
  };
}
