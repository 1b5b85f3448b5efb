import assert from 'node:assert/strict';
import { test } from 'node:test';
import { takeTurns } from '../../src/intake/turns.ts';

test('long work gives others their turn, again and again', async () => {
  let others = 0;
  let running = true;
  const beOther = (): void => {
    others++;
    if (running) setImmediate(beOther);
  };
  setImmediate(beOther);
  const turn = takeTurns();
  let given = 0;
  while (given < 3) {
    const over = turn();
    if (over) given++;
    await over;
  }
  running = false;
  assert.ok(others >= 3, `${others} turns`);
});

test('short work is done at once', () => {
  const turn = takeTurns();
  assert.equal(turn(), undefined);
});
