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
  const turn = startTimeSlices();
  let given = 0;
  while (given < 3) {
    const over = turn();
    if (over) given++;
    await over;
  }
  running = false;
  assert.ok(others >= 3, `${others} turns`);
});

test('short work is not divided', () => {
  const turn = startTimeSlices();
  assert.equal(turn(), undefined);
});
