import type { TestContext } from 'node:test';

/** Cleanup at the end of a test, in reverse order. */
export function atEnd(t: TestContext): (work: () => Promise<unknown>) => void {
  const works: (() => Promise<unknown>)[] = [];
  t.after(async () => {
    for (const work of works.toReversed()) await work();
  });
  return (work) => works.push(work);
}
