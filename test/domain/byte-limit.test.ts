import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { makeByteLimit } from '../../src/domain/byte-limit.ts';

describe('a limit of bytes in memory', () => {
  it('lets in what has room, and the rest in order as it is given back', async () => {
    const limit = makeByteLimit(100);
    const begun: string[] = [];
    const take = (name: string, bytes: number) =>
      limit.take(bytes).then((release) => {
        begun.push(name);
        return release;
      });
    const a = take('a', 60);
    const b = take('b', 40);
    const c = take('c', 50);
    const d = take('d', 10);
    await setImmediate();
    assert.deepEqual(begun, ['a', 'b']);
    (await b)();
    const late = take('late', 1);
    await setImmediate();
    assert.deepEqual(begun, ['a', 'b'], 'c was first, and 40 are not enough for it');
    (await a)();
    await setImmediate();
    assert.deepEqual(begun, ['a', 'b', 'c', 'd', 'late']);
    (await late)();
    (await c)();
    (await d)();
    (await take('e', 100))();
  });

  it('takes back what was held once, however often it is told', async () => {
    const limit = makeByteLimit(10);
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

  it('lets in more than there is, alone', async () => {
    const limit = makeByteLimit(10);
    const release = await limit.take(1_000);
    let other = false;
    void limit.take(1).then(() => (other = true));
    await setImmediate();
    assert.equal(other, false);
    release();
    await setImmediate();
    assert.equal(other, true);
  });

  it('leaves room for others when one would hold it all; who waits for himself holds up nobody', async () => {
    const limit = makeByteLimit(30, 20);
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

  it('is waited for no longer than the caller wants', async () => {
    const limit = makeByteLimit(10);
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

  it('lets those behind in when the one before them gives up', async () => {
    const limit = makeByteLimit(10);
    await limit.take(5);
    const giveUp = new AbortController();
    const large = limit.take(10, { signal: giveUp.signal });
    const small = limit.take(5);
    giveUp.abort(new Error('enough'));
    await assert.rejects(large, /enough/);
    await small;
  });
});
