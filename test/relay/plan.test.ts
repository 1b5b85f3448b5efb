import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { GROUP_SIZE } from '../../src/domain/limits.ts';
import { needsToken, plan, type PlannedGroup } from '../../src/relay/plan.ts';
import type { StartCapacity } from '../../src/relay/unclaimed-starts.ts';
import type { EmailRow } from '../../src/store/outbox/outbox.ts';

let count = 0;
const LATER = '2026-03-01T10:00:00.000Z';

function row(fields: Partial<EmailRow> = {}): EmailRow {
  const id = `em_${++count}`;
  return {
    id: String(count),
    action: 'start',
    message_id: id,
    tries: 0,
    org_id: 'org_1',
    batch_id: null,
    first_to: 'a@example.net',
    more_to: 0,
    due_at: null,
    is_later: false,
    is_late: false,
    version: 0,
    workflow_id: id,
    is_open: true,
    traceparent: null,
    ...fields,
  };
}
const rows = (n: number, fields: Partial<EmailRow> = {}) => Array.from({ length: n }, () => row(fields));
const sizes = (groups: readonly PlannedGroup[]) => groups.map((group) => group.rows.length);

const capacity = (fields: Partial<StartCapacity>): StartCapacity => ({
  own: 20,
  detached: 20,
  fresh: 3,
  late: 5,
  ...fields,
});

describe('plan within the capacity of workers', () => {
  test('lets more single emails share than may have their own workflow', () => {
    const waiting = rows(21);
    assert.deepEqual(plan(waiting.slice(1), 50, 'each', capacity({})).alone, waiting.slice(1));
    const { alone, groups } = plan(waiting, 50, 'each', capacity({}));
    assert.deepEqual([alone, sizes(groups)], [[], [21]]);
  });

  test('groups also a lone email while workers are behind', () => {
    const { alone, groups } = plan(rows(1), 50, 'group singles', capacity({ own: 0 }));
    assert.deepEqual([alone, sizes(groups)], [[], [1]]);
  });

  test('sends emails that have waited in groups of their own, after those that are due just now', () => {
    const [late, fresh] = [rows(1_200, { is_late: true }), rows(3)];
    const { groups, deferred } = plan([...late, ...fresh], 50, 'each', capacity({ own: 0, late: 2 }));
    assert.deepEqual(
      groups.map((group) => [group.rows.length, group.isLate]),
      [
        [3, false],
        [500, true],
        [500, true],
      ],
    );
    assert.equal(deferred, 200);
  });

  test('leaves emails in the outbox while enough groups are unclaimed', () => {
    const waiting = [...rows(3), ...rows(4, { is_late: true })];
    const { alone, groups, deferred } = plan(waiting, 50, 'group singles', capacity({ own: 0, fresh: 0, late: 0 }));
    assert.deepEqual([alone, groups, deferred], [[], [], 7]);
  });

  test('starts few emails that share no workflow, and never groups them', () => {
    const waiting = rows(4, { action: 'leave' });
    const { alone, groups, deferred } = plan(waiting, 50, 'each', capacity({ own: 0, detached: 1 }));
    assert.deepEqual([alone, groups, deferred], [waiting.slice(0, 1), [], 3]);
    assert.deepEqual(plan(waiting, 3, 'each', capacity({})).alone, waiting.slice(0, 3));
  });
});

describe('plan', () => {
  test('below the limit each email has its own workflow', () => {
    const waiting = [...rows(25), ...rows(25, { batch_id: 'bt_1' })];
    assert.deepEqual(plan(waiting, 50), { alone: waiting, groups: [], deferred: 0 });
  });

  test('puts all emails into one workflow if they are one more than the limit', () => {
    const { alone, groups, deferred } = plan(rows(51), 50);
    assert.deepEqual([alone.length, sizes(groups), deferred], [0, [51], 0]);
  });

  test('a batch of 10,000 becomes twenty workflows', () => {
    const { alone, groups, deferred } = plan(rows(10_000, { batch_id: 'bt_1' }), 50);
    assert.deepEqual([alone.length, sizes(groups), deferred], [0, Array(20).fill(GROUP_SIZE), 0]);
  });

  test('above the limit batches wait before single emails', () => {
    const [bulk, singles] = [rows(700, { batch_id: 'bt_1' }), rows(600)];
    const { groups, deferred } = plan([...bulk, ...singles], 3);
    assert.deepEqual(sizes(groups), [500, 100, 500]);
    assert.ok(groups.slice(0, 2).every((group) => group.rows.every((each) => each.batch_id === null)));
    assert.equal(deferred, 200);
  });

  test('single emails beside a batch have their own workflow while the limit allows them and its groups', () => {
    const waiting = [...rows(1_200, { batch_id: 'bt_1' }), ...rows(4)];
    const { alone, groups, deferred } = plan(waiting, 7);
    assert.deepEqual(alone, waiting.slice(1_200));
    assert.deepEqual([sizes(groups), deferred], [[500, 500, 200], 0]);
    assert.deepEqual(sizes(plan(waiting, 6).groups), [4, 500, 500, 200]);
  });

  test('puts them into one also below the limit in mode group', () => {
    const waiting = [...rows(20), ...rows(3, { due_at: LATER, is_later: true })];
    const { alone, groups, deferred } = plan(waiting, 50, 'group');
    assert.deepEqual([alone.length, sizes(groups), deferred], [3, [20], 0]);
  });

  test('starts one workflow per email of a small batch in mode group singles while the limit allows it', () => {
    const waiting = [...rows(4), ...rows(3, { batch_id: 'bt_1' })];
    const { alone, groups, deferred } = plan(waiting, 4, 'group singles');
    assert.deepEqual([alone, sizes(groups), deferred], [waiting.slice(4), [4], 0]);
    assert.deepEqual(sizes(plan(waiting, 3, 'group singles').groups), [4, 3]);
  });

  test('starts only rows without a token in mode defer', () => {
    const waiting = [...rows(2), ...rows(3, { due_at: LATER, is_later: true })];
    const { alone, groups, deferred } = plan(waiting, 50, 'defer');
    assert.deepEqual([alone, groups, deferred], [waiting.slice(2), [], 2]);
  });

  test('a batch has one workflow for each due time', () => {
    const bulk = { batch_id: 'bt_1' };
    const waiting = [
      ...rows(3, bulk),
      ...rows(4, { ...bulk, due_at: LATER, is_later: true }),
      ...rows(5, { ...bulk, due_at: '2026-03-01T10:00:00.001Z', is_later: true }),
      // Long due, since Temporal was away: it goes with those that are due at once.
      ...rows(6, { ...bulk, due_at: '2026-01-01T00:00:00.000Z' }),
    ];
    assert.deepEqual(sizes(plan(waiting, 10).groups), [9, 4, 5]);
  });

  test('a single remaining email needs no group', () => {
    const waiting = [...rows(2), row({ batch_id: 'bt_1' })];
    const { alone, groups } = plan(waiting, 2);
    assert.deepEqual(sizes(groups), [2]);
    assert.deepEqual(alone, waiting.slice(2));
  });

  test('scheduled single emails, changes and ended emails need no token', () => {
    const free = [
      row({ action: 'reschedule' }),
      row({ action: 'cancel', is_open: false }),
      row({ action: 'leave', is_open: false }),
      row({ is_open: false }),
      row({ due_at: LATER, is_later: true }),
    ];
    assert.ok(!free.some(needsToken));
    assert.deepEqual(plan(free, 0), { alone: free, groups: [], deferred: 0 });
    assert.deepEqual(plan([...free, ...rows(3)], 1).alone, free);
  });

  test('emails that are due precede those scheduled for later', () => {
    const [later, due] = [rows(3, { due_at: LATER, is_later: true }), rows(2)];
    assert.deepEqual(plan([...later, ...due], 2).alone, [...due, ...later]);
    const { alone, groups } = plan([...later, ...due, row({ batch_id: 'bt_1' })], 2);
    assert.deepEqual([sizes(groups), alone.slice(1)], [[2], later]);
  });

  test('groups contain one organization where possible', () => {
    const waiting = Array.from({ length: 1_000 }, (_, i) => row({ org_id: `org_${i % 2}` }));
    for (const group of plan(waiting, 2).groups) assert.equal(new Set(group.rows.map(({ org_id }) => org_id)).size, 1);
  });

  test('no row is lost, doubled or above the limit', () => {
    const anyRow = fc.record({
      action: fc.constantFrom('start' as const, 'start' as const, 'leave' as const, 'cancel' as const),
      batch_id: fc.constantFrom(null, 'bt_1'),
      org_id: fc.constantFrom('org_1', 'org_2'),
      open: fc.boolean(),
      waits: fc.boolean(),
      due_at: fc.constantFrom(null, LATER),
    });
    const modes = ['each', 'group', 'group singles', 'defer'] as const;
    fc.assert(
      fc.property(
        fc.array(anyRow, { maxLength: 40 }),
        fc.nat(20),
        fc.constantFrom(...modes),
        (fields, budget, mode) => {
          const waiting = fields.map(row);
          const { alone, groups, deferred } = plan(waiting, budget, mode);
          const planned = [...alone, ...groups.flatMap((group) => group.rows)];
          assert.equal(new Set(planned).size, planned.length);
          assert.equal(planned.length + deferred, waiting.length);
          assert.ok(alone.filter(needsToken).length + groups.length <= budget);
          for (const { rows: group } of groups) {
            assert.ok(group.length > 1 && group.length <= GROUP_SIZE && group.every(needsToken));
            assert.equal(new Set(group.map(({ is_later, due_at }) => (is_later ? due_at : null))).size, 1);
            assert.equal(new Set(group.map(({ batch_id }) => batch_id === null)).size, 1);
          }
        },
      ),
    );
  });
});
