import assert from 'node:assert/strict';
import { test } from 'node:test';
import { median, medians, mediansByRow, quantile } from '../../bench/figures.ts';

test('a quantile is one of the values, by the nearest rank, whatever their order', () => {
  const values = [40, 10, 30, 20];
  assert.deepEqual(
    [0, 0.25, 0.26, 0.5, 0.75, 0.99, 1].map((share) => quantile(values, share)),
    [10, 10, 20, 20, 30, 40, 40],
  );
  assert.deepEqual(values, [40, 10, 30, 20]);
  assert.equal(quantile([], 0.5), NaN);
});

test('a quantile compares numbers as numbers', () => {
  assert.equal(median([9, 100, 20]), 20);
});

test('runs of a measurement become a row: its numbers are medians, each on its own', () => {
  const runs = [
    { provider: 'smtp', fast: 3, slow: 10 },
    { provider: 'smtp', fast: 1, slow: 30 },
    { provider: 'smtp', fast: 2, slow: 20 },
  ];
  assert.deepEqual(medians(runs), { provider: 'smtp', fast: 2, slow: 20 });
  assert.deepEqual(medians([]), {});
});

test('runs of several rows become as many', () => {
  const runs = [1, 5, 3].map((n) => [{ n }, { n: 10 * n }]);
  assert.deepEqual(mediansByRow(runs), [{ n: 3 }, { n: 30 }]);
  assert.deepEqual(mediansByRow([]), []);
});
