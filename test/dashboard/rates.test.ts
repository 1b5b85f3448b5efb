import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { changeInWords, judgeRate, RATE_KINDS, type RateKind, shareInWords } from '../../src/dashboard/rates.ts';
import { type Counts, STATES } from '../../src/domain/statistics.ts';

const counts = (some: Partial<Counts>): Counts => ({
  ...(Object.fromEntries(STATES.map((state) => [state, 0])) as unknown as Counts),
  ...some,
});
const kind = (state: string) => RATE_KINDS.find((each) => each.state === state) as RateKind;

describe('a share in words', () => {
  for (const [part, total, words] of [
    [0, 3, '0 %'],
    [3, 3, '100 %'],
    [7, 23_000, '0.030 %'],
    [1, 3_000_000, '0.000033 %'],
    [1, 200, '0.50 %'],
    [1, 3, '33.3 %'],
    [999_999, 1_000_000, '99.99 %'],
    [997, 1_000, '99.7 %'],
  ] as const) {
    test(`is ${words} for ${part} of ${total}`, () => assert.equal(shareInWords(part, total), words));
  }
});

describe('a rate', () => {
  for (const [state, part, judgement] of [
    ['bounced', 19, 'good'],
    ['bounced', 20, 'warning'],
    ['bounced', 50, 'bad'],
    ['complained', 0, 'good'],
    ['complained', 1, 'warning'],
    ['complained', 3, 'bad'],
    ['opened', 0, null],
  ] as const) {
    test(`of ${part} in 1,000 ${state} is judged ${judgement}`, () =>
      assert.equal(judgeRate(kind(state), counts({ sent: 1_000, delivered: 1_000, [state]: part })), judgement));
  }

  test('is not judged without emails', () => assert.equal(judgeRate(kind('bounced'), counts({})), null));

  test('changes by percentage points, if both periods have one', () => {
    const change = (now: Partial<Counts>, before: Partial<Counts>) =>
      changeInWords(kind('delivered'), counts(now), counts(before));
    assert.equal(change({ sent: 100, delivered: 97 }, { sent: 50, delivered: 45 }), 'up 7.0 points');
    assert.equal(change({ sent: 100, delivered: 97 }, { sent: 1_000, delivered: 975 }), 'down 0.50 points');
    assert.equal(change({ sent: 100, delivered: 97 }, { sent: 200, delivered: 194 }), 'unchanged');
    assert.equal(change({ sent: 100, delivered: 97 }, {}), null);
    assert.equal(change({}, { sent: 100, delivered: 97 }), null);
  });
});
