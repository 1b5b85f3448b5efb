import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { type Holder, makeFairSlots } from '../../src/lib/fair-slots.ts';

/** Slots whose work lasts until `finish` is called for it, with the names of work in the order of its start. */
function scenario(slots: number, maxWaiting: number) {
  const fair = makeFairSlots({ slots, maxWaiting, refuse: () => new Error('full') });
  const started: string[] = [];
  const refused: string[] = [];
  const ends = new Map<string, () => void>();
  const run = (holder: Holder, name: string, isPriority = false) =>
    void fair
      .run(
        holder,
        async () => {
          started.push(name);
          await new Promise<void>((resolve) => ends.set(name, resolve));
        },
        { isPriority },
      )
      .catch(() => refused.push(name));
  const finish = async (name: string) => {
    ends.get(name)?.();
    await setImmediate();
  };
  /** Finishes work, oldest first, until none is left. */
  const drain = async () => {
    for (let i = 0; i < started.length; i++) await finish(started[i] as string);
    return started;
  };
  return { fair, run, started, refused, drain };
}

describe('slots', () => {
  it('run so much work at a time, and serve waiting holders in rotation', async () => {
    const { run, started, drain } = scenario(2, 10);
    for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) run('a', name);
    run('b', 'b1');
    run('b', 'b2');
    run('c', 'c1');
    assert.deepEqual(started, ['a1', 'a2']);
    assert.deepEqual(await drain(), ['a1', 'a2', 'a3', 'b1', 'c1', 'a4', 'b2', 'a5']);
  });

  it('serve holders within a larger one as one holder, and these in rotation', async () => {
    const { run, drain } = scenario(1, 100);
    run('now', 'now');
    for (let i = 0; i < 4; i++) run(['large', `part ${i % 2}`], `l${i}`);
    run(['small', 'part'], 's1');
    run(['small', 'part'], 's2');
    assert.deepEqual(await drain(), ['now', 'l0', 's1', 'l1', 's2', 'l2', 'l3']);
  });

  it('that are full of many holders within a larger one refuse its newest work in favor of another', async () => {
    const { run, refused, drain } = scenario(1, 50);
    run('now', 'now');
    for (let i = 0; i < 50; i++) run(['2001:db8::/48', `2001:db8:0:${i}::/56`, `/64 ${i}`], `l${i}`);
    run(['2001:db8::/48', 'one more', 'one more'], 'l50');
    run(['203.0.113.7'], 's1');
    await setImmediate();
    assert.equal(refused.length, 2);
    assert.equal(refused[0], 'l50', 'within the larger one, nobody has more');
    const started = await drain();
    assert.deepEqual([started.length, started[2]], [51, 's1']);
  });

  it('serve priority work first', async () => {
    const { run, drain } = scenario(1, 10);
    for (const name of ['a1', 'a2']) run('a', name);
    run('p', 'p1', true);
    run('q', 'q1', true);
    assert.deepEqual(await drain(), ['a1', 'p1', 'q1', 'a2']);
  });

  it('that are full refuse the newest work of the holder with the most, in favor of one with less', async () => {
    const { run, refused, drain } = scenario(1, 3);
    for (const name of ['a1', 'a2', 'a3', 'a4']) run('a', name);
    run('a', 'a5');
    await setImmediate();
    assert.deepEqual(refused, ['a5']);
    run('b', 'b1');
    run('c', 'c1');
    await setImmediate();
    assert.deepEqual(refused, ['a5', 'a4', 'a3']);
    run('d', 'd1');
    await setImmediate();
    assert.deepEqual(refused, ['a5', 'a4', 'a3', 'd1'], 'nobody is ahead of it');
    run('p', 'p1', true);
    assert.deepEqual(await drain(), ['a1', 'p1', 'a2', 'b1', 'c1']);
  });

  it('are free again after work that fails', async () => {
    const { fair } = scenario(1, 0);
    await assert.rejects(
      fair.run('a', () => Promise.reject(new Error('failed'))),
      /failed/,
    );
    assert.equal(await fair.run('a', () => Promise.resolve(1)), 1);
  });
});
