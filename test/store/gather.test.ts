import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gather } from '../../src/store/postgres/gather.ts';

/** Writes that end when `endAll` is called. */
function writes(refuses: (items: readonly string[]) => Error | undefined = () => undefined) {
  const begun: string[][] = [];
  const ends: (() => void)[] = [];
  const write = async (items: readonly string[]) => {
    begun.push([...items]);
    await new Promise<void>((resolve) => ends.push(resolve));
    const error = refuses(items);
    if (error) throw error;
    return items.map((item) => item.toUpperCase());
  };
  /** Ends the writes that have begun, and those that begin meanwhile. */
  const endAll = async () => {
    while (ends.length > 0) {
      ends.shift()?.();
      await new Promise(setImmediate);
    }
  };
  return { begun, write, endAll };
}

describe('items that are gathered', () => {
  test('the first is written immediately, and those that come meanwhile share the next write', async () => {
    const { begun, write, endAll } = writes();
    const add = gather(write, 3);
    const all = Promise.all(['a', 'b', 'c', 'd', 'e'].map(add));
    assert.deepEqual(begun, [['a']]);
    await endAll();
    assert.deepEqual(begun, [['a'], ['b', 'c', 'd'], ['e']]);
    assert.deepEqual(await all, ['A', 'B', 'C', 'D', 'E']);
  });

  test('an item that cannot be written does not fail the others', async () => {
    const { begun, write, endAll } = writes((items) => (items.includes('bad') ? new Error('no') : undefined));
    const add = gather(write, 10);
    const all = Promise.allSettled(['a', 'b', 'bad', 'c'].map(add));
    await endAll();
    assert.deepEqual(begun, [['a'], ['b', 'bad', 'c'], ['b'], ['bad'], ['c']]);
    assert.deepEqual(
      (await all).map((each) => (each.status === 'fulfilled' ? each.value : (each.reason as Error).message)),
      ['A', 'B', 'no', 'C'],
    );
  });

  test('while the database is unreachable all items of a write fail, and the next is written again', async () => {
    let isAway = true;
    const { begun, write, endAll } = writes(() =>
      isAway ? Object.assign(new Error('away'), { code: 'ECONNREFUSED' }) : undefined,
    );
    const add = gather(write, 10);
    const all = Promise.allSettled(['a', 'b', 'c'].map(add));
    await endAll();
    assert.deepEqual(begun, [['a'], ['b', 'c']]);
    assert.ok((await all).every(({ status }) => status === 'rejected'));
    isAway = false;
    const later = add('d');
    await endAll();
    assert.equal(await later, 'D');
  });

  test('calls back when nothing is left to write', async () => {
    let idle = 0;
    const { write, endAll } = writes();
    const add = gather(write, 1, () => idle++);
    const all = Promise.all(['a', 'b', 'c'].map(add));
    assert.equal(idle, 0);
    await endAll();
    await all;
    assert.equal(idle, 1);
  });
});
