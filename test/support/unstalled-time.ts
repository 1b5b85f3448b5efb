import { readFileSync } from 'node:fs';

/** Interval at which the clock is read, and the maximum that counts for one interval. */
const INTERVAL_MS = 20;
const MAX_INTERVAL_MS = 100;

let unstalledTotalMs = 0;
let lastCheckMs = performance.now();
let lastWaitedMs = waitedMs();

/**
 * Milliseconds in which this machine could work, for timeouts that hold on a busy machine: time in which this process did not
 * run counts a tenth of a second at most, and time in which any process waited for a processor a tenth.
 */
export function unstalledMs(): number {
  const now = performance.now();
  const waitedNow = waitedMs();
  const passed = now - lastCheckMs;
  // A tenth always counts, so that every timeout ends.
  const idle = Math.max(passed / 10, passed - (waitedNow - lastWaitedMs));
  unstalledTotalMs += Math.min(idle, MAX_INTERVAL_MS);
  lastCheckMs = now;
  lastWaitedMs = waitedNow;
  return unstalledTotalMs;
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

setInterval(unstalledMs, INTERVAL_MS).unref();
