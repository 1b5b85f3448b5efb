import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { makeStartLimit } from '../../src/relay/start-limit.ts';

describe('the limit of workflow starts', () => {
  test('starts with 2.5 seconds of tokens, and holds no more', () => {
    let now = 0;
    const limit = makeStartLimit(20, () => now);
    assert.equal(limit.available(), 50);
    now += 3_600_000;
    assert.equal(limit.available(), 50);
  });

  test('refills evenly', () => {
    let now = 0;
    const limit = makeStartLimit(20, () => now);
    limit.take(50);
    assert.equal(limit.available(), 0);
    assert.equal(limit.msUntilNext(), 50);
    now += 49;
    assert.equal(limit.available(), 0);
    now += 1;
    assert.equal(limit.available(), 1);
    assert.equal(limit.msUntilNext(), 0);
    now += 1_000;
    assert.equal(limit.available(), 21);
  });

  test('holds at least one token at a low rate', () => {
    let now = 0;
    const limit = makeStartLimit(0.1, () => now);
    assert.equal(limit.available(), 1);
    limit.take(1);
    assert.equal(limit.msUntilNext(), 10_000);
    now += 10_000;
    assert.equal(limit.available(), 1);
  });

  test('never gives more than its burst and its refill', () => {
    const steps = fc.array(fc.record({ wait: fc.nat(500), want: fc.nat(100) }), { maxLength: 100 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000 }), steps, (perSecond, wanted) => {
        let now = 0;
        let spent = 0;
        const limit = makeStartLimit(perSecond, () => now);
        for (const { wait, want } of wanted) {
          now += wait;
          const tokens = Math.min(want, limit.available());
          limit.take(tokens);
          spent += tokens;
          assert.ok(spent <= Math.max(1, perSecond * 2.5) + (now / 1_000) * perSecond + 1e-6);
        }
      }),
    );
  });
});
