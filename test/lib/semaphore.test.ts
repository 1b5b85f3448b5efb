import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { makeSemaphore } from '../../src/lib/semaphore.ts';

describe('a limit of bytes in memory', () => {
  it('admits requests that fit, and the others in order of release', async () => {
    const limit = makeSemaphore(100);
    const begun: string[] = [];
    const take = (name: string, bytes: number) =>
      limit.take(bytes).then((release) => {
        begun.push(name);
        return release;
      });
    const a = take('a', 60);
    const b = take('b', 40);
    const c = take('c', 100);
    const d = take('d', 100);
    await setImmediate();
    assert.deepEqual(begun, ['a', 'b']);
    (await b)();
    (await a)();
    await setImmediate();
    assert.deepEqual(begun, ['a', 'b', 'c']);
    (await c)();
    (await d)();
    (await take('e', 100))();
    assert.deepEqual(begun, ['a', 'b', 'c', 'd', 'e']);
  });

  it('lets later requests that fit overtake one that does not', async () => {
    const limit = makeSemaphore(100);
    const held = await limit.take(60);
    let isLarge = false;
    void limit.take(50).then(() => (isLarge = true));
    await limit.take(10);
    await limit.take(30);
    assert.equal(isLarge, false);
    held();
    await setImmediate();
    assert.equal(isLarge, true);
  });

  it('admits later requests if the one before them is aborted', async () => {
    const limit = makeSemaphore(10);
    await limit.take(5);
    const giveUp = new AbortController();
    const large = limit.take(10, { signal: giveUp.signal });
    // Two requests pass the large one; then its turn comes first.
    for (let i = 0; i < 2; i++) (await limit.take(5))();
    const small = limit.take(5);
    await setImmediate();
    giveUp.abort(new Error('enough'));
    await assert.rejects(large, /enough/);
    await small;
  });

  it('does not let them starve it: after its capacity in bytes they wait behind it', async () => {
    const limit = makeSemaphore(100);
    const held = await limit.take(20);
    let isLarge = false;
    const large = limit.take(100).then((release) => {
      isLarge = true;
      return release;
    });
    // Each begins before the one before it ends, so that there is never enough for the large one.
    let overtaking = 0;
    for (let previous = await limit.take(20); ; overtaking++) {
      const next = limit.take(20);
      const first = await Promise.race([next, setImmediate(undefined)]);
      previous();
      if (!first) break;
      previous = first;
      assert.ok(overtaking < 10, 'it never gets its turn');
    }
    assert.equal(isLarge, false);
    held();
    const release = await large;
    assert.equal(isLarge, true);
    release();
  });

  it('is contended only while a holder within its share waits', async () => {
    const limit = makeSemaphore(30, 20);
    assert.equal(limit.isContended(), false);
    const a = await limit.take(20, { holder: 'a' });
    const own = limit.take(10, { holder: 'a' });
    assert.equal(limit.isContended(), false);
    const other = limit.take(20, { holder: 'b' });
    assert.equal(limit.isContended(), true);
    a();
    (await own)();
    (await other)();
    assert.equal(limit.isContended(), false);
  });

  it('releases the same bytes once only', async () => {
    const limit = makeSemaphore(10);
    const release = await limit.take(10);
    release();
    release();
    const held = await limit.take(10);
    let second = false;
    void limit.take(1).then(() => (second = true));
    await setImmediate();
    assert.equal(second, false);
    held();
  });

  it('admits a request above its capacity, alone', async () => {
    const limit = makeSemaphore(10);
    const release = await limit.take(1_000);
    let other = false;
    void limit.take(1).then(() => (other = true));
    await setImmediate();
    assert.equal(other, false);
    release();
    await setImmediate();
    assert.equal(other, true);
  });

  it('limits a holder to its share and lets other holders pass it', async () => {
    const limit = makeSemaphore(30, 20);
    const begun: string[] = [];
    const take = (holder: string, bytes: number) =>
      limit.take(bytes, { holder }).then((release) => {
        begun.push(`${holder} ${bytes}`);
        return release;
      });
    const first = take('a', 10);
    const second = take('a', 10);
    const third = take('a', 10);
    const other = take('b', 10);
    await setImmediate();
    assert.deepEqual(begun, ['a 10', 'a 10', 'b 10']);
    (await other)();
    await setImmediate();
    assert.equal(begun.length, 3, 'it still holds its share');
    (await first)();
    await setImmediate();
    assert.equal(begun.length, 4);
    for (const held of [second, third]) (await held)();
    // More than a share is all of a share.
    const all = await take('a', 1_000);
    (await take('b', 10))();
    all();
  });

  it('rejects a request that is aborted', async () => {
    const limit = makeSemaphore(10);
    const release = await limit.take(10);
    const giveUp = new AbortController();
    const given = limit.take(8, { signal: giveUp.signal });
    const behind = limit.take(10);
    giveUp.abort(new Error('enough'));
    await assert.rejects(given, /enough/);
    await assert.rejects(limit.take(1, { signal: giveUp.signal }), /enough/);
    release();
    (await behind)();
    (await limit.take(10))();
  });
});
