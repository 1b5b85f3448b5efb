import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTimeSlices } from '../../src/intake/time-slices.ts';

test('long work gives others their turn, again and again', async () => {
  let others = 0;
  let running = true;
  const beOther = (): void => {
    others++;
    if (running) setImmediate(beOther);
  };
  setImmediate(beOther);
  const yieldIfDue = startTimeSlices();
  let yields = 0;
  while (yields < 3) {
    const over = yieldIfDue();
    if (over) yields++;
    await over;
  }
  running = false;
  assert.ok(others >= 3, `${others} turns`);
});

test('short work is not divided', () => {
  const yieldIfDue = startTimeSlices();
  assert.equal(yieldIfDue(), undefined);
});
