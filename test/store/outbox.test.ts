import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { project, projectReschedule } from '../../src/projection/emails.ts';
import {
  deferOutbox,
  deleteOutbox,
  groupOutboxRows,
  detachFromGroup,
  lockGroups,
  lockEmailRows,
} from '../../src/store/outbox/outbox.ts';
import { transaction } from '../../src/store/postgres/pool.ts';
import { organizationFixture } from '../support/organization.ts';
import { accept, acceptOne, force, inMs, newEmail, organization } from './mail.ts';

const { pool, orgId } = await organizationFixture();

describe('the outbox', () => {
  beforeEach(async () => {
    await pool.query('DELETE FROM outbox');
  });

  const count = async () => (await pool.query('SELECT FROM outbox')).rowCount;

  test('a row contains the action and what the relay needs to dispatch it', async () => {
    const due = inMs(3_600_000);
    const id = await acceptOne(pool, orgId, {
      batch_id: 'bt_1',
      to: ['Ann <a@example.net>', 'b@example.net', 'c@example.net'],
      scheduled_at: due,
    });
    const [row] = await lockEmailRows(pool, 10);
    assert.ok(row);
    const { id: rowId, ...rest } = row;
    assert.match(rowId, /^\d+$/);
    assert.deepEqual(rest, {
      action: 'start',
      message_id: id,
      tries: 0,
      org_id: orgId,
      batch_id: 'bt_1',
      first_to: 'Ann <a@example.net>',
      more_to: 2,
      due_at: due,
      is_later: true,
      is_late: false,
      version: 0,
      workflow_id: id,
      is_open: true,
      traceparent: null,
    });
  });

  test('a row shows the current state of the email', async () => {
    const id = await acceptOne(pool, orgId, { scheduled_at: inMs(3_600_000) });
    await pool.query(`UPDATE emails SET scheduled_at = $2, schedule_version = 3 WHERE id = $1`, [id, inMs(60_000)]);
    const [row] = await lockEmailRows(pool, 10);
    assert.equal(row?.version, 3);
    for (const [status, open] of [
      ['scheduled', true],
      ['queued', true],
      ['sent', false],
      ['canceled', false],
      ['failed', false],
    ] as const) {
      await force(pool, id, status);
      assert.equal((await lockEmailRows(pool, 10))[0]?.is_open, open, status);
    }
  });

  test('lockEmailRows returns the oldest rows first, up to the limit', async () => {
    const emails = Array.from({ length: 30 }, () => newEmail());
    for (const email of emails) await accept(pool, orgId, [email]);
    const rows = await lockEmailRows(pool, 20);
    assert.deepEqual(
      rows.map(({ message_id }) => message_id),
      emails.slice(0, 20).map(({ id }) => id),
    );
  });

  test('locks a row for one relay at a time, and releases it with its transaction', async () => {
    await accept(
      pool,
      orgId,
      Array.from({ length: 30 }, () => newEmail()),
    );
    const taken = await transaction(pool, async (one) => {
      const first = await lockEmailRows(one, 10);
      const second = await transaction(pool, async (two) => {
        const rows = await lockEmailRows(two, 10);
        const third = await lockEmailRows(pool, 100);
        assert.equal(third.length, 10);
        await deleteOutbox(
          two,
          rows.map(({ id }) => id),
        );
        return rows;
      });
      const ids = new Set([...first, ...second].map(({ id }) => id));
      assert.equal(ids.size, 20);
      return first;
    });
    assert.equal(await count(), 20);
    const again = await lockEmailRows(pool, 10);
    assert.deepEqual(again, taken);
  });

  test('defers a refused row by a second, doubling to ten minutes', async () => {
    await acceptOne(pool, orgId);
    const [{ id } = { id: '' }] = await lockEmailRows(pool, 1);
    const waits: number[] = [];
    for (let i = 0; i < 25; i++) {
      await deferOutbox(pool, [id]);
      const { rows } = await pool.query<{ wait: number; tries: number }>(
        `SELECT round(extract(epoch FROM retry_at - now()))::int AS wait, tries FROM outbox`,
      );
      assert.equal(rows[0]?.tries, i + 1);
      waits.push(rows[0].wait);
    }
    assert.deepEqual(waits.slice(0, 12), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
    assert.equal(waits.at(-1), 600);
  });

  test('does not return a deferred row before its time', async () => {
    const [first, second] = [await acceptOne(pool, orgId), await acceptOne(pool, orgId)];
    const [row] = await lockEmailRows(pool, 1);
    assert.equal(row?.message_id, first);
    await deferOutbox(pool, [row.id]);
    const ready = async () => (await lockEmailRows(pool, 10)).map(({ message_id }) => message_id);
    assert.deepEqual(await ready(), [second]);
    await pool.query(`UPDATE outbox SET retry_at = now() - interval '1 s' WHERE id = $1`, [row.id]);
    assert.deepEqual(await ready(), [first, second]);
  });

  const rowsFor = async (ids?: readonly string[]) =>
    (await lockEmailRows(pool, 1_000))
      .filter(({ message_id }) => !ids || ids.includes(message_id))
      .map((row) => ({ outboxId: row.id, id: row.message_id, version: row.version }));
  const workflowOf = async (id: string) =>
    (await pool.query<{ workflow_id: string }>('SELECT workflow_id FROM emails WHERE id = $1', [id])).rows[0]
      ?.workflow_id;

  test('groupOutboxRows replaces rows by one of a group that lists its members, and sets their workflow_id', async () => {
    const due = inMs(3_600_000);
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.push(await acceptOne(pool, orgId, { batch_id: 'bt_1', scheduled_at: due }));
    await groupOutboxRows(pool, [{ id: 'grp_1', isLate: false, members: await rowsFor() }]);
    assert.deepEqual(await lockEmailRows(pool, 10), []);
    const [group, ...others] = await lockGroups(pool, 10);
    assert.deepEqual(others, []);
    assert.ok(group);
    assert.match(group.id, /^\d+$/);
    assert.deepEqual(group, {
      id: group.id,
      action: 'group',
      message_id: 'grp_1',
      tries: 0,
      members: ids.map((id) => ({ id, version: 0 })),
      org_id: orgId,
      batch_id: 'bt_1',
      channel: 'email',
      is_bulk: true,
      is_late: false,
      traceparents: [],
      due_at: due,
    });
    for (const id of ids) assert.equal(await workflowOf(id), 'grp_1');
  });

  test('groupOutboxRows stores groups of several organizations; a mixed group has no common organization, batch or time', async () => {
    const other = await organization(pool, 'other.example');
    const [one, two] = [await acceptOne(pool, orgId), await acceptOne(pool, orgId, { batch_id: 'bt_1' })];
    const three = newEmail({ from_domain: 'other.example', from: 'a@other.example', batch_id: 'bt_2' });
    await accept(pool, other, [three]);
    const four = await acceptOne(pool, orgId, { batch_id: 'bt_2' });
    await groupOutboxRows(pool, [{ id: 'grp_1', isLate: false, members: await rowsFor([one, two]) }]);
    await groupOutboxRows(pool, [{ id: 'grp_2', isLate: false, members: await rowsFor([three.id, four]) }]);
    const groups = await lockGroups(pool, 10);
    assert.deepEqual(
      groups.map(({ message_id, org_id, batch_id, is_bulk, due_at }) => ({
        message_id,
        org_id,
        batch_id,
        is_bulk,
        due_at,
      })),
      [
        { message_id: 'grp_1', org_id: orgId, batch_id: null, is_bulk: false, due_at: null },
        { message_id: 'grp_2', org_id: null, batch_id: 'bt_2', is_bulk: true, due_at: null },
      ],
    );
  });

  test('lockGroups returns groups of single emails before groups of batches', async () => {
    const [bulk, single] = [await acceptOne(pool, orgId, { batch_id: 'bt_1' }), await acceptOne(pool, orgId)];
    await groupOutboxRows(pool, [{ id: 'grp_1', isLate: false, members: await rowsFor([bulk]) }]);
    await groupOutboxRows(pool, [{ id: 'grp_2', isLate: false, members: await rowsFor([single]) }]);
    const groups = await lockGroups(pool, 10);
    assert.deepEqual(
      groups.map(({ message_id }) => message_id),
      ['grp_2', 'grp_1'],
    );
  });

  test('groupOutboxRows leaves out emails that were rescheduled, canceled or ended since they were read', async () => {
    const scheduled_at = inMs(3_600_000);
    const ids: string[] = [];
    for (let i = 0; i < 4; i++) ids.push(await acceptOne(pool, orgId, { scheduled_at }));
    const [moved, canceled, ended, stays] = ids as [string, string, string, string];
    const read = await rowsFor();
    await projectReschedule(pool, orgId, moved, inMs(7_200_000));
    await project(pool, 'canceled', [{ id: canceled }]);
    await force(pool, ended, 'sent');
    await groupOutboxRows(pool, [{ id: 'grp_1', isLate: false, members: read }]);
    const [group] = await lockGroups(pool, 10);
    assert.deepEqual(group?.members, [{ id: stays, version: 0 }]);
    assert.equal(await workflowOf(moved), moved);
    const kept = (await lockEmailRows(pool, 10)).map(({ message_id, action }) => `${action} ${message_id}`);
    assert.deepEqual(
      kept.sort(),
      [`reschedule ${moved}`, ...[canceled, ended, moved].map((id) => `start ${id}`)].sort(),
    );
  });

  test('groupOutboxRows stores no group without members', async () => {
    const id = await acceptOne(pool, orgId);
    const read = await rowsFor();
    await force(pool, id, 'sent');
    await groupOutboxRows(pool, [{ id: 'grp_1', isLate: false, members: read }]);
    assert.deepEqual(await lockGroups(pool, 10), []);
  });

  test('a reschedule detaches an email from its group', async () => {
    const id = await acceptOne(pool, orgId, { scheduled_at: inMs(3_600_000) });
    await groupOutboxRows(pool, [{ id: 'grp_1', isLate: false, members: await rowsFor() }]);
    assert.ok(await projectReschedule(pool, orgId, id, inMs(7_200_000)));
    assert.equal(await workflowOf(id), id);
  });

  test('detachFromGroup detaches emails after a wait, and only those that the group still delivers', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.push(await acceptOne(pool, orgId));
    const [soon, late, gone] = ids as [string, string, string];
    await groupOutboxRows(pool, [{ id: 'grp_1', isLate: false, members: await rowsFor() }]);
    await pool.query('DELETE FROM outbox');
    await pool.query('UPDATE emails SET workflow_id = id WHERE id = $1', [gone]);
    const members = [
      { id: soon, waitMs: 0, alone: true },
      { id: late, waitMs: 60_000, alone: false },
      { id: gone, waitMs: 0, alone: true },
    ];
    await detachFromGroup(pool, 'grp_1', members);
    await detachFromGroup(pool, 'grp_1', members);
    assert.deepEqual(
      (await lockEmailRows(pool, 10)).map(({ message_id, action }) => [message_id, action]),
      [[soon, 'leave']],
    );
    assert.equal(await count(), 2);
    for (const id of ids) assert.equal(await workflowOf(id), id);
    await pool.query(`UPDATE outbox SET retry_at = retry_at - interval '60 s'`);
    assert.equal((await lockEmailRows(pool, 10)).length, 2);
  });
});
