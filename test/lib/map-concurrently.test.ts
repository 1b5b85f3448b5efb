import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { mapConcurrently } from '../../src/lib/map-concurrently.ts';

test('runs at most so many calls at a time, and returns the results in order', async () => {
  let running = 0;
  let most = 0;
  const results = await mapConcurrently(new Set([5, 1, 4, 2, 3, 0]), 3, async (item) => {
    most = Math.max(most, ++running);
    for (let turn = 0; turn < item; turn++) await setImmediate();
    running--;
    return item * 2;
  });
  assert.deepEqual(results, [10, 2, 8, 4, 6, 0]);
  assert.equal(most, 3);
});

test('rejects with the first failure after all calls have ended', async () => {
  const ended: number[] = [];
  const mapping = mapConcurrently([0, 1, 2, 3], 2, async (item) => {
    await setImmediate();
    ended.push(item);
    if (item === 0 || item === 3) throw new Error(`no ${item}`);
  });
  await assert.rejects(mapping, /no 0/);
  assert.deepEqual(ended, [0, 1, 2, 3]);
});
