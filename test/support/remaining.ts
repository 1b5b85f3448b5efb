import assert from 'node:assert/strict';

const PASSED_MS = 30_000;

/** How far the system clock may be set back between two readings. */
export const CLOCK_STEP_MS = 1_000;

/** Asserts that almost all of a wait remains. Its end and `actualMs` come from two readings of the clock. */
export function assertRemaining(actualMs: number | null | undefined, wholeMs: number): void {
  assert.ok(
    actualMs != null && actualMs > wholeMs - PASSED_MS && actualMs <= wholeMs + CLOCK_STEP_MS,
    `${actualMs} ms remain of ${wholeMs}`,
  );
}
