import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addCounts, type Counts, ratesOf, STATES } from '../../src/domain/statistics.ts';

const counts = (given: Partial<Counts>): Counts => ({ ...addCounts([]), ...given });

test('rates of delivery and bounces are of what was sent, the others of what was delivered', () => {
  const all = counts({ sent: 100, delivered: 80, bounced: 10, complained: 2, opened: 40, clicked: 20 });
  assert.deepEqual(ratesOf(all), { delivery: 0.8, bounce: 0.1, complaint: 0.025, open: 0.5, click: 0.25 });
});

test('a rate of nothing is null', () => {
  const none = { delivery: null, bounce: null, complaint: null, open: null, click: null };
  assert.deepEqual(ratesOf(counts({})), none);
  assert.deepEqual(ratesOf(counts({ sent: 4, bounced: 1 })), { ...none, delivery: 0, bounce: 0.25 });
});

test('counts of several periods are added state by state', () => {
  const each = Object.fromEntries(STATES.map((state, n) => [state, n])) as Counts;
  assert.deepEqual(addCounts([each, each]), Object.fromEntries(STATES.map((state, n) => [state, 2 * n])));
});
