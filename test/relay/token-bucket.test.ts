import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { makeTokenBucket } from '../../src/relay/token-bucket.ts';

describe('the token bucket of workflow starts', () => {
  test('starts with 2.5 seconds of tokens, and holds no more', () => {
    let now = 0;
    const bucket = makeTokenBucket(20, () => now);
    assert.equal(bucket.available(), 50);
    now += 3_600_000;
    assert.equal(bucket.available(), 50);
  });

  test('refills evenly', () => {
    let now = 0;
    const bucket = makeTokenBucket(20, () => now);
    bucket.take(50);
    assert.equal(bucket.available(), 0);
    assert.equal(bucket.msUntilNext(), 50);
    now += 49;
    assert.equal(bucket.available(), 0);
    now += 1;
    assert.equal(bucket.available(), 1);
    assert.equal(bucket.msUntilNext(), 0);
    now += 1_000;
    assert.equal(bucket.available(), 21);
  });

  test('holds at least one token at a low rate', () => {
    let now = 0;
    const bucket = makeTokenBucket(0.1, () => now);
    assert.equal(bucket.available(), 1);
    bucket.take(1);
    assert.equal(bucket.msUntilNext(), 10_000);
    now += 10_000;
    assert.equal(bucket.available(), 1);
  });

  test('never gives more than its burst and its refill', () => {
    const steps = fc.array(fc.record({ wait: fc.nat(500), want: fc.nat(100) }), { maxLength: 100 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000 }), steps, (perSecond, wanted) => {
        let now = 0;
        let spent = 0;
        const bucket = makeTokenBucket(perSecond, () => now);
        for (const { wait, want } of wanted) {
          now += wait;
          const tokens = Math.min(want, bucket.available());
          bucket.take(tokens);
          spent += tokens;
          assert.ok(spent <= Math.max(1, perSecond * 2.5) + (now / 1_000) * perSecond + 1e-6);
        }
      }),
    );
  });
});
