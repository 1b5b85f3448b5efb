/** Returns a signal that aborts after a time, or when one of other signals does. */
export function makeDeadline(ms: number, others: readonly AbortSignal[]): AbortSignal {
  const timeout = AbortSignal.timeout(ms);
  // AbortSignal.any refers to its sources weakly: in Node 20, a timeout without a listener ends with the next garbage collection.
  timeout.addEventListener('abort', () => undefined, { once: true });
  return AbortSignal.any([timeout, ...others]);
}
