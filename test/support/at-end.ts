import type { TestContext } from 'node:test';

/** What is done when a test ends, the last thing first: what stands on something else goes before it. */
export function atEnd(t: TestContext): (work: () => Promise<unknown>) => void {
  const works: (() => Promise<unknown>)[] = [];
  t.after(async () => {
    for (const work of works.toReversed()) await work();
  });
  return (work) => works.push(work);
}
