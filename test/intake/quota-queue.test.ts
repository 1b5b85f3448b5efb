import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { makeQuotaQueue } from '../../src/intake/quota-queue.ts';

/** Work that ends when `end` is called. */
function works() {
  const ends: (() => void)[] = [];
  const begun: number[] = [];
  const work = (n: number) => () => {
    begun.push(n);
    return new Promise<number>((resolve) => (ends[n] = () => resolve(n)));
  };
  return { begun, work, end: (n: number) => ends[n]?.() };
}

describe('emails of an organization with a quota', () => {
  it('run in their order, four at a time', async () => {
    const queue = makeQuotaQueue();
    const { begun, work, end } = works();
    queue.recordUsage('org_a', true);
    const all = Promise.all(Array.from({ length: 7 }, (_, n) => queue.run('org_a', work(n))));
    await setImmediate();
    assert.deepEqual(begun, [0, 1, 2, 3]);
    end(2);
    await setImmediate();
    assert.deepEqual(begun, [0, 1, 2, 3, 4]);
    for (const n of [0, 1, 3]) end(n);
    await setImmediate();
    assert.deepEqual(begun, [0, 1, 2, 3, 4, 5, 6]);
    for (const n of [4, 5, 6]) end(n);
    assert.deepEqual(await all, [0, 1, 2, 3, 4, 5, 6]);
  });

  it('release their slot when they fail', async () => {
    const queue = makeQuotaQueue();
    queue.recordUsage('org_a', true);
    for (let round = 0; round < 3; round++) {
      const fails = () => queue.run('org_a', () => Promise.reject(new Error('no')));
      const outcomes = await Promise.allSettled(Array.from({ length: 9 }, fails));
      assert.ok(
        outcomes.every(({ status }) => status === 'rejected'),
        'all of them have run',
      );
    }
  });

  it('do not block other organizations, nor any once the quota is removed', async () => {
    const queue = makeQuotaQueue();
    const { begun, work } = works();
    queue.recordUsage('org_a', true);
    for (let n = 0; n < 6; n++) void queue.run('org_a', work(n));
    for (let n = 6; n < 12; n++) void queue.run('org_b', work(n));
    await setImmediate();
    assert.equal(begun.length, 4 + 6);
    queue.recordUsage('org_a', false);
    for (let n = 12; n < 18; n++) void queue.run('org_a', work(n));
    await setImmediate();
    assert.equal(begun.length, 4 + 6 + 6);
  });
});
