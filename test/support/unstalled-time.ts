import { readFileSync } from 'node:fs';

/** Milliseconds between two looks at the clock, and the most that counts of what has passed between them. */
const LOOK_EVERY = 20;
const COUNTS_AT_MOST = 100;

let counted = 0;
let looked = performance.now();
let waited = waitedMs();

/**
 * Milliseconds in which this machine could have done what a test waits for. Tests measure "within a second" by it, and
 * pass on a busy machine: time in which this process did not run counts a tenth of a second at most, and time in which
 * any process waited for a processor a tenth.
 */
export function unstalledMs(): number {
  const now = performance.now();
  const waitedNow = waitedMs();
  const passed = now - looked;
  // A tenth counts in any case, so that what never happens is found out.
  const idle = Math.max(passed / 10, passed - (waitedNow - waited));
  counted += Math.min(idle, COUNTS_AT_MOST);
  looked = now;
  waited = waitedNow;
  return counted;
}

/** Milliseconds since boot in which any process waited for a processor, by Linux's pressure stall information, or 0. */
function waitedMs(): number {
  try {
    const [, microseconds = '0'] = /^some .*total=(\d+)/.exec(readFileSync('/proc/pressure/cpu', 'utf8')) ?? [];
    return Number(microseconds) / 1_000;
  } catch {
    return 0;
  }
}

setInterval(unstalledMs, LOOK_EVERY).unref();
