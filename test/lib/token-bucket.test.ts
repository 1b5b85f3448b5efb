import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type Bucket, type Rate, refill, bucketState, take } from '../../src/lib/token-bucket.ts';

const RATE: Rate = { perSecond: 10, burst: 20 };
const full = (): Bucket => ({ usage: 0, atMs: 0 });

describe('a token bucket', () => {
  it('gives what it holds, then what flows back, and states when there will be enough', () => {
    const bucket = full();
    for (let i = 0; i < 20; i++) assert.equal(take(bucket, RATE, 1), 0);
    assert.equal(take(bucket, RATE, 1), 1);
    assert.equal(take(bucket, RATE, 10), 1);
    refill(bucket, RATE, 99);
    assert.equal(take(bucket, RATE, 1), 1, 'not a whole token yet');
    refill(bucket, RATE, 100);
    assert.equal(take(bucket, RATE, 1), 0);
    refill(bucket, RATE, 1_000_000);
    assert.deepEqual(bucketState(bucket, RATE), { limit: 20, remaining: 20, resetSeconds: 0 });
  });

  it('lets the largest through when it is half full, and is overdrawn then', () => {
    const bucket = { usage: 11, atMs: 0 };
    assert.equal(take(bucket, RATE, 1_000), 1);
    refill(bucket, RATE, 100);
    assert.equal(take(bucket, RATE, 1_000), 0);
    assert.deepEqual(bucketState(bucket, RATE), { limit: 20, remaining: 0, resetSeconds: 101 });
    assert.equal(take(bucket, RATE, 1), 100, 'seconds until the usage is paid');
    assert.equal(take(bucket, RATE, 1_000), 100);
  });

  it('holds at least one token at one token per second', () => {
    const slow: Rate = { perSecond: 1, burst: 1 };
    const bucket = full();
    assert.equal(take(bucket, slow, 1), 0);
    assert.equal(take(bucket, slow, 1), 1);
    refill(bucket, slow, 600);
    assert.equal(take(bucket, slow, 1), 1, 'not a whole token yet');
    refill(bucket, slow, 1_000);
    assert.equal(take(bucket, slow, 1), 0);
  });

  it('lets a request through after exactly the time that it returned, in spite of rounding', () => {
    const bucket = full();
    for (const [now, cost] of [
      [0, 28],
      [1_981, 36],
      [5_704, 51],
    ] as const) {
      refill(bucket, RATE, now);
      take(bucket, RATE, cost);
    }
    refill(bucket, RATE, 8_500);
    const seconds = take(bucket, RATE, 10);
    assert.ok(seconds > 0);
    refill(bucket, RATE, 8_500 + seconds * 1_000);
    assert.equal(take(bucket, RATE, 10), 0);
  });

  it('never gives more than its burst and what flowed back, except by one overdraft that is paid first', () => {
    const step = fc.record({ wait: fc.integer({ min: 0, max: 5_000 }), cost: fc.integer({ min: 1, max: 60 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const bucket = full();
        let now = 0;
        let given = 0;
        for (const { wait, cost } of steps) {
          now += wait;
          refill(bucket, RATE, now);
          const before = bucket.usage;
          const seconds = take(bucket, RATE, cost);
          if (seconds === 0) {
            assert.ok(before + Math.min(cost, RATE.burst / 2) - RATE.burst <= 1e-9, 'there was enough');
            given += cost;
          } else {
            assert.ok(Number.isInteger(seconds) && seconds >= 1, `${seconds} s`);
            const later = { ...bucket };
            refill(later, RATE, now + seconds * 1_000);
            assert.equal(take(later, RATE, cost), 0, 'after Retry-After it passes');
          }
        }
        const owed = Math.max(0, bucket.usage - RATE.burst);
        assert.ok(given <= RATE.burst + (now / 1_000) * RATE.perSecond + owed + 1e-6, `${given} in ${now} ms`);
      }),
    );
  });
});
