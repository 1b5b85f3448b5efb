/** Milliseconds between two looks at the clock, and the most that counts of what has passed between them. */
const LOOK_EVERY = 20;
const COUNTS_AT_MOST = 100;

let counted = 0;
let looked = performance.now();

/**
 * Milliseconds that this process has had so far. What is to happen "within a second" is measured by it: while a machine
 * stalls or serves others, neither the service nor the test runs, and such a gap counts a tenth of a second at most.
 */
export function lived(): number {
  const now = performance.now();
  counted += Math.min(now - looked, COUNTS_AT_MOST);
  looked = now;
  return counted;
}

setInterval(lived, LOOK_EVERY).unref();
