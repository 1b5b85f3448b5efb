/** Like `Promise.all`, but throws the first error only when all have ended, so that none goes on unobserved. */
export async function awaitAll<T extends readonly unknown[] | []>(
  promises: T,
): Promise<{ -readonly [P in keyof T]: Awaited<T[P]> }> {
  await Promise.allSettled(promises);
  return Promise.all(promises);
}
