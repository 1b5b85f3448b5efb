import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { GroupingPace } from '../../src/relay/grouping-pace.ts';
import type { EmailRow, GroupRow } from '../../src/store/outbox/outbox.ts';

const STARTS_PER_SECOND = 10;

let now: number;
let pace: GroupingPace;
beforeEach(() => {
  now = 5_000;
  pace = new GroupingPace(STARTS_PER_SECOND, () => now);
});

const emails = (count: number, batch_id: string | null = null) =>
  Array.from({ length: count }, () => ({ batch_id }) as EmailRow);

const batchGroup = (size: number, due_at: string | null = null) =>
  ({ is_bulk: true, due_at, members: Array.from({ length: size }, () => ({})) }) as unknown as GroupRow;

describe('the pace of grouping', () => {
  test('leaves single emails their own workflows while nothing was grouped', () => {
    assert.equal(pace.chooseMode(100), 'each');
    pace.recordPlan([], emails(100));
    assert.equal(pace.chooseMode(100), 'each');
  });

  test('waits 100 ms after a group of single emails, and 300 ms after 50 of them', () => {
    for (const [count, ms] of [
      [2, 100],
      [50, 300],
    ] as const) {
      pace.recordPlan(emails(count), []);
      assert.equal(pace.msUntilRound(), ms);
      now += ms - 1;
      assert.equal(pace.chooseMode(1), 'defer');
      now += 1;
      assert.equal(pace.chooseMode(2), 'group', 'more than the tokens of 100 ms are pending');
      assert.equal(pace.chooseMode(1), 'each', 'no more than these are pending');
      now += 101;
      assert.equal(pace.chooseMode(2), 'each', 'the last round was long ago');
    }
  });

  test('does not wait after a group of a batch', () => {
    pace.recordPlan(emails(500, 'batch_1'), []);
    assert.equal(pace.chooseMode(1), 'each');
  });

  test('groups single emails every 300 ms while workers send a batch, for 2 ms an email', () => {
    pace.recordStarts([batchGroup(200), batchGroup(50)]);
    assert.equal(pace.chooseMode(1), 'group singles');
    pace.recordPlan([], emails(1));
    assert.equal(pace.msUntilRound(), 300);
    now += 300;
    assert.equal(pace.chooseMode(1), 'group singles');
    now += 199;
    assert.equal(pace.chooseMode(1), 'group singles');
    now += 1;
    assert.equal(pace.chooseMode(1), 'each');
  });

  test('groups of batches that wait for their time, and groups of singles, do not occupy workers', () => {
    pace.recordStarts([batchGroup(500, '2026-11-27T10:00:00.000Z'), { ...batchGroup(500), is_bulk: false }]);
    assert.equal(pace.chooseMode(1), 'each');
  });
});
