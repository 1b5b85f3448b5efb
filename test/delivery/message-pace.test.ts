import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { makeMessagePace } from '../../src/delivery/messages/pace.ts';

function at(perSecond: number) {
  let time = 1_000_000;
  const pace = makeMessagePace(perSecond, () => time);
  return {
    wait: (message: string, number = 'num_1') => pace.reserve(number, message),
    pass: (milliseconds: number) => (time += milliseconds),
  };
}

describe('the pace of a number', () => {
  it('reserves the messages of a second immediately, and later ones at the rate', () => {
    const { wait } = at(10);
    const waits = Array.from({ length: 15 }, (_, i) => wait(`wa_${i}`));
    assert.deepEqual(waits, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100, 200, 300, 400, 500]);
  });

  it('keeps the slot of a message that asks again', () => {
    const { wait, pass } = at(10);
    for (let i = 0; i < 10; i++) wait(`wa_${i}`);
    assert.equal(wait('wa_a'), 100);
    assert.equal(wait('wa_b'), 200);
    assert.equal(wait('wa_a'), 100);
    pass(100);
    assert.equal(wait('wa_b'), 100);
    assert.equal(wait('wa_a'), 0);
    pass(100);
    assert.equal(wait('wa_b'), 0);
  });

  it('is separate for each number', () => {
    const { wait } = at(1);
    assert.equal(wait('wa_1', 'num_1'), 0);
    assert.equal(wait('wa_2', 'num_1'), 1_000);
    assert.equal(wait('wa_3', 'num_2'), 0);
  });

  it('never exceeds the rate of a second after the burst', () => {
    const { wait, pass } = at(10);
    const sentAt: number[] = [];
    let time = 0;
    const waiting = new Set(Array.from({ length: 60 }, (_, i) => `wa_${i}`));
    while (waiting.size > 0) {
      for (const id of waiting) if (wait(id) === 0 && waiting.delete(id)) sentAt.push(time);
      pass(50);
      time += 50;
    }
    // After the burst, ten in every second.
    assert.equal(sentAt.filter((each) => each === 0).length, 10);
    for (let second = 0; second < 5_000; second += 100)
      assert.ok(sentAt.filter((each) => each > second && each <= second + 1_000).length <= 10);
    assert.equal(sentAt.at(-1), 5_000);
  });

  it('drops the slot of a message that does not ask again', () => {
    const { wait, pass } = at(1);
    wait('wa_1');
    wait('wa_2');
    pass(70_000);
    assert.equal(wait('wa_3'), 0);
    pass(70_000);
    assert.equal(wait('wa_2'), 0);
  });
});
