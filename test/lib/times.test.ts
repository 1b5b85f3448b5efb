import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatDuration, percentile, timeStep } from '../../src/lib/times.ts';

test('a percentile lies within the step that holds it', () => {
  assert.equal(percentile(new Map(), 0.5), null);
  assert.equal(percentile(new Map([[4, 0]]), 0.5), null);
  // 2^(19/2) to 2^(20/2) ms.
  const second = percentile(new Map([[20, 7]]), 0.5) ?? 0;
  assert.ok(second > 724 && second < 1_024, String(second));
  const steps = new Map([
    [20, 90],
    [0, 5],
    [30, 5],
  ]);
  assert.ok((percentile(steps, 0.02) ?? 2) < 1, 'the first step begins at nothing');
  assert.ok((percentile(steps, 0.95) ?? 0) <= 1_024, String(percentile(steps, 0.95)));
  assert.ok((percentile(steps, 0.96) ?? 0) > 2 ** 14.5, String(percentile(steps, 0.96)));
  assert.equal(percentile(steps, 1), 2 ** 15);
});

test('a step is the smallest whose end is not before the duration', () => {
  for (const [milliseconds, step] of [
    [-5, 0],
    [0, 0],
    [1, 0],
    [1.41, 1],
    [1.42, 2],
    [2, 2],
    [1_000, 20],
    [1_024, 20],
    [1_025, 21],
    [2_592_000_000, 63],
  ] as const) {
    assert.equal(timeStep(milliseconds), step, `${milliseconds} ms`);
  }
});

test('formats a duration in words', () => {
  const spans: Readonly<Record<string, number>> = {
    '0 ms': 0,
    '999 ms': 999,
    '1.5 s': 1_500,
    '1 min 0 s': 59_990,
    '2 min 5 s': 125_000,
    '1 h 0 min': 3_599_900,
    '1 h 30 min': 5_400_000,
    '2 d 1 h': 49 * 3_600_000,
  };
  for (const [words, milliseconds] of Object.entries(spans)) assert.equal(formatDuration(milliseconds), words);
});
