import assert from 'node:assert/strict';
import { test } from 'node:test';
import { retryDelayAfter } from '../../src/domain/webhooks.ts';

const [SECOND, MINUTE, HOUR] = [1_000, 60_000, 3_600_000];
/** decisions 7.3. */
const EXPECTED = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR)];

test('ten attempts: immediately, then after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h', () => {
  const waits = Array.from({ length: 9 }, (_, i) => retryDelayAfter(i + 1, undefined, 0.5));
  assert.deepEqual(waits, EXPECTED);
  for (const failures of [10, 11, 100]) assert.equal(retryDelayAfter(failures, undefined, 0.5), undefined);
  assert.equal(retryDelayAfter(10, 1, 0.5), undefined, 'an endpoint cannot ask for more of them');
});

test('a wait is a tenth longer or shorter by chance', () => {
  for (const [index, wait] of EXPECTED.entries()) {
    assert.equal(retryDelayAfter(index + 1, undefined, 0), wait * 0.9);
    assert.equal(retryDelayAfter(index + 1, undefined, 1), wait * 1.1);
  }
});

test('Retry-After of the endpoint makes a delay longer, never shorter', () => {
  assert.equal(retryDelayAfter(1, 12 * SECOND, 0.5), 12 * SECOND);
  assert.equal(retryDelayAfter(2, 12 * SECOND, 0.5), 5 * MINUTE);
  assert.equal(retryDelayAfter(1, 0, 0.5), 5 * SECOND);
});
