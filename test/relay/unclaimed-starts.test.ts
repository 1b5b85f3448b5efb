import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { UnclaimedStarts } from '../../src/relay/unclaimed-starts.ts';
import type { GroupRow } from '../../src/store/outbox/outbox.ts';

let count = 0;
function group(fields: Partial<GroupRow> = {}): GroupRow {
  const id = `grp_${++count}`;
  const members = [{ id: `em_of_${id}`, version: 0 }];
  return {
    ...{ id: String(count), action: 'group', message_id: id, tries: 0, members, org_id: null, batch_id: null },
    ...{ channel: 'email', is_bulk: false, is_late: false, due_at: null, traceparents: [] },
    ...fields,
  };
}

function setUp(startsPerSecond = 20) {
  let now = 0;
  const starts = new UnclaimedStarts(startsPerSecond, () => now);
  const startOwn = (n: number): string[] => {
    const ids = Array.from({ length: n }, () => `em_${++count}`);
    for (const id of ids) starts.recordOwn(id);
    return ids;
  };
  return {
    starts,
    startOwn,
    /** Time passes, and no claim is found after it. */
    pass: (ms: number) => {
      now += ms;
      starts.recordClaims([]);
    },
    passUnseen: (ms: number) => void (now += ms),
  };
}

describe('own workflows', () => {
  test('are started for as many emails as may start in a second, less those without a claim', () => {
    const { starts, startOwn } = setUp();
    const [first = ''] = startOwn(15);
    assert.equal(starts.capacity().own, 5);
    starts.recordClaims([first]);
    assert.equal(starts.capacity().own, 6);
  });

  test('are not started while one is without a claim for more than a second', () => {
    const { starts, startOwn, pass } = setUp();
    startOwn(1);
    pass(1_000);
    assert.deepEqual([starts.isBehind, starts.capacity().own], [false, 19]);
    pass(1);
    assert.deepEqual([starts.isBehind, starts.capacity().own], [true, 0]);
  });

  test('are started again five seconds after workers have caught up, and later each time they fall behind soon', () => {
    const { starts, startOwn, pass } = setUp();
    const fallBehind = () => {
      const ids = startOwn(1);
      pass(1_001);
      assert.ok(starts.isBehind);
      starts.recordClaims(ids);
    };
    for (const holdMs of [5_000, 10_000, 20_000, 40_000, 60_000, 60_000]) {
      fallBehind();
      pass(holdMs - 1);
      assert.ok(starts.isBehind, `${holdMs}`);
      pass(1);
      assert.ok(!starts.isBehind, `${holdMs}`);
    }
    pass(180_000);
    fallBehind();
    pass(5_000);
    assert.ok(!starts.isBehind);
  });

  test('do not count as without a claim before claims were looked up', () => {
    const { starts, startOwn, passUnseen } = setUp();
    const ids = startOwn(3);
    passUnseen(5_000);
    assert.ok(!starts.isBehind);
    starts.recordClaims(ids);
    assert.deepEqual([starts.isBehind, starts.capacity().own], [false, 20]);
  });

  test('are always started from 10,000 starts a second on', () => {
    const { starts, startOwn, pass } = setUp(10_000);
    startOwn(500);
    pass(60_000);
    assert.deepEqual([starts.isBehind, starts.capacity().own, starts.pending()], [false, Infinity, []]);
  });

  test('without a claim for more than three seconds are given up for shared ones', () => {
    const { starts, startOwn, pass } = setUp();
    const [first, second] = startOwn(2);
    pass(2_000);
    startOwn(1);
    pass(1_001);
    assert.deepEqual(starts.takeOverdue(1), [first]);
    assert.deepEqual(starts.takeOverdue(10), [second]);
    assert.equal(starts.pending().length, 1);
  });

  test('start for emails that share none although workers are behind, two at a time', () => {
    const { starts, startOwn, pass } = setUp();
    const ids = startOwn(2);
    pass(2_000);
    assert.deepEqual(starts.capacity(), { own: 0, detached: 0, fresh: 3, late: 5 });
    starts.recordClaims(ids.slice(0, 1));
    assert.equal(starts.capacity().detached, 1);
  });

  test('that were overtaken by later ones for long do not count: something else keeps them', () => {
    const { starts, startOwn, pass } = setUp();
    startOwn(1);
    pass(11_000);
    const later = startOwn(1);
    assert.ok(starts.isBehind);
    starts.recordClaims(later);
    assert.equal(starts.lagMs, 0);
  });
});

describe('groups', () => {
  test('of fresh and of late emails have a limit each; those of batches and of later times do not count', () => {
    const { starts } = setUp();
    starts.recordGroups([
      group(),
      group({ is_late: true }),
      group({ is_bulk: true }),
      group({ due_at: '2030-01-01T00:00:00.000Z' }),
    ]);
    assert.deepEqual([starts.capacity().fresh, starts.capacity().late], [2, 4]);
  });

  test('follow each other slowly while none is claimed, so that one that is lost does not stop the others', () => {
    const { starts, pass } = setUp();
    starts.recordGroups([group(), group(), group()]);
    for (const ms of [5_000, 10_000, 20_000]) {
      pass(ms);
      assert.equal(starts.capacity().fresh, 0);
      pass(1);
      assert.equal(starts.capacity().fresh, 1, `${ms}`);
      starts.recordGroups([group()]);
    }
  });
});
