import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { pino } from 'pino';
import { makeRescueUpkeep } from '../../src/upkeep/rescue.ts';
import type { Workflows } from '../../src/upkeep/workflow-state.ts';
import { findAlmostDueWorkflows, type LookUp } from '../../src/store/emails/stuck.ts';
import { acceptOne, force, inMs, nextLook, organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';
import { fakeWorkflows } from './workflows.ts';

const { pool } = await useDatabase(5);
let orgId: string;
beforeEach(async () => {
  await pool.query('TRUNCATE emails, outbox, domains, organizations CASCADE');
  orgId = await organization(pool);
});

/** The tasks with a fake Temporal. */
function make(overrides: Partial<Workflows> = {}, lookUp: LookUp = { provider: 'postmark', canBeAsked: true }) {
  const { workflows, described, terminated } = fakeWorkflows(overrides);
  const tasks = makeRescueUpkeep({ pool, workflows, lookUp, log: pino({ level: 'silent' }) });
  return {
    putBackOverdue: () => tasks.putBackOverdue(),
    putBackScheduled: () => tasks.putBackScheduled(null),
    replaceFailing: () => tasks.replaceFailing(),
    described,
    terminated,
  };
}

async function outbox(): Promise<string[]> {
  const { rows } = await pool.query<{ row: string }>(
    `SELECT action || ' ' || message_id AS row FROM outbox ORDER BY message_id`,
  );
  return rows.map(({ row }) => row);
}

describe('overdue emails', () => {
  /** An email that has been due for so many minutes, with nothing in the outbox. @returns its id */
  async function overdue(minutes: number, status: 'queued' | 'scheduled' = 'queued', workflowId?: string) {
    const id = await acceptOne(pool, orgId, status === 'scheduled' ? { scheduled_at: inMs(60_000) } : {});
    await pool.query(
      `UPDATE emails SET created_at = now() - make_interval(mins => $2 + 60), workflow_id = coalesce($3, id),
         scheduled_at = CASE WHEN status = 'scheduled' THEN now() - make_interval(mins => $2) END WHERE id = $1`,
      [id, minutes, workflowId],
    );
    if (status === 'queued')
      await pool.query(`UPDATE emails SET created_at = now() - make_interval(mins => $2) WHERE id = $1`, [id, minutes]);
    await pool.query('DELETE FROM outbox WHERE message_id = $1', [id]);
    return id;
  }

  for (const state of ['closed', 'missing', 'idle', 'failing'] as const) {
    test(`get a new workflow when theirs is ${state}`, async () => {
      const queued = await overdue(11);
      const scheduled = await overdue(11, 'scheduled');
      const members = [await overdue(11, 'queued', 'grp_1'), await overdue(11, 'scheduled', 'grp_1')];
      const { putBackOverdue, terminated } = make({ describe: () => Promise.resolve(state) });
      assert.deepEqual(await putBackOverdue(), { done: 4, next: null });
      // Members of groups can be grouped again; a single email needs a new run, unless Temporal has deleted its workflow.
      const action = state === 'missing' ? 'start' : 'leave';
      const rows = [...[queued, scheduled].map((id) => `${action} ${id}`), ...members.map((id) => `start ${id}`)];
      assert.deepEqual((await outbox()).toSorted(), rows.toSorted());
      const isOpen = state === 'idle' || state === 'failing';
      assert.deepEqual(terminated.toSorted(), isOpen ? [queued, scheduled, 'grp_1'].toSorted() : []);
      const { rowCount } = await pool.query('SELECT FROM emails WHERE workflow_id <> id');
      assert.equal(rowCount, 0);
      // Emails in the outbox are not inserted again, also when they are due for a check.
      await pool.query(`UPDATE emails SET look_at = now() - interval '1 second'`);
      assert.equal((await putBackOverdue()).done, 0);
    });
  }

  test('are not changed while their workflow runs, and are checked less and less often', async () => {
    const id = await overdue(11);
    const old = await overdue(100 * 60, 'scheduled');
    const { putBackOverdue } = make({ describe: () => Promise.resolve('running') });
    assert.equal((await putBackOverdue()).done, 2);
    assert.deepEqual(await outbox(), []);
    assert.deepEqual([await nextLook(pool, id), await nextLook(pool, old)], [11, 60]);
    assert.equal((await putBackOverdue()).done, 0);
  });

  test('do not include emails that are not overdue or in the outbox', async () => {
    await overdue(9);
    await overdue(9, 'scheduled');
    await acceptOne(pool, orgId, { scheduled_at: inMs(3_600_000) });
    const moved = await overdue(60);
    await pool.query(`UPDATE emails SET scheduled_at = now() - interval '5 minutes' WHERE id = $1`, [moved]);
    const waiting = await overdue(60);
    await pool.query(`INSERT INTO outbox (message_id, action) VALUES ($1, 'start')`, [waiting]);
    await overdue(60, 'queued', 'grp_2');
    await pool.query(`INSERT INTO outbox (message_id, action, group_of) VALUES ('grp_2', 'group', '{}')`);
    const ended = await overdue(60);
    await force(pool, ended, 'delivered');
    const { putBackOverdue, described } = make();
    assert.deepEqual(await putBackOverdue(), { done: 0, next: null });
    assert.deepEqual(described, []);
  });

  test('do not include emails that changed while Temporal was asked', async () => {
    const sent = await overdue(11);
    const moved = await overdue(11, 'queued', 'grp_3');
    const { putBackOverdue } = make({
      describe: async () => {
        await force(pool, sent, 'sent');
        await pool.query('UPDATE emails SET workflow_id = id WHERE id = $1', [moved]);
        return 'closed';
      },
    });
    await putBackOverdue();
    assert.deepEqual(await outbox(), []);
  });

  test('of all organizations are found, 200 in a step', async () => {
    for (let i = 0; i < 210; i++) {
      if (i % 70 === 0) orgId = await organization(pool, `d${i}.example`);
      const id = await acceptOne(pool, orgId, { from_domain: `d${Math.floor(i / 70) * 70}.example` });
      await pool.query(`UPDATE emails SET created_at = now() - interval '1 hour' WHERE id = $1`, [id]);
    }
    await pool.query('DELETE FROM outbox');
    const { putBackOverdue } = make();
    assert.deepEqual(await putBackOverdue(), { done: 200, next: '' });
    assert.deepEqual(await putBackOverdue(), { done: 10, next: null });
    assert.equal((await outbox()).length, 210);
  });

  test('include marketing emails with unsent copies', async () => {
    const unsent = await overdue(11);
    const whole = await overdue(11);
    await pool.query('UPDATE emails SET marketing = true WHERE id = ANY ($1)', [[unsent, whole]]);
    await pool.query(
      `INSERT INTO email_recipients (email_id, recipient, status)
       VALUES ($1, 'a@example.net', 'delivered'), ($1, 'b@example.net', 'queued'), ($2, 'c@example.net', 'delivered')`,
      [unsent, whole],
    );
    for (const id of [unsent, whole]) await force(pool, id, 'delivered');
    const { putBackOverdue } = make();
    assert.deepEqual(await putBackOverdue(), { done: 1, next: null });
    assert.deepEqual(await outbox(), [`leave ${unsent}`]);
    assert.ok(((await nextLook(pool, unsent)) ?? 0) <= 60, 'checked like a queued one');
  });

  test('get one outbox row when two tasks find them at the same time', async () => {
    await overdue(9, 'scheduled');
    const { putBackOverdue, putBackScheduled } = make();
    await pool.query(`UPDATE emails SET workflow_id = 'grp_4'`);
    await Promise.all([putBackScheduled(), putBackScheduled(), putBackScheduled(), putBackOverdue()]);
    assert.equal((await outbox()).length, 1);
  });
});

describe('scheduled emails that are almost due', () => {
  test('get a new workflow when theirs is gone, before their time', async () => {
    const members = [await scheduled(60, 'grp_1'), await scheduled(60, 'grp_1')];
    const own = await scheduled(80);
    const late = await scheduled(-60);
    await scheduled(200);
    const waiting = await scheduled(60);
    await pool.query(`INSERT INTO outbox (message_id, action) VALUES ($1, 'start')`, [waiting]);
    const running = await scheduled(30);
    const unseen = await scheduled(30);
    const { putBackScheduled, described } = make({
      findRunning: (ids) => Promise.resolve(new Set(ids.filter((id) => id === running))),
      describe: (id) => {
        described.push(id);
        return Promise.resolve(id === unseen ? 'idle' : id === own ? 'closed' : 'missing');
      },
    });
    assert.deepEqual(await putBackScheduled(), { done: 4, next: null });
    assert.deepEqual(
      described.toSorted(),
      ['grp_1', own, late, unseen].toSorted(),
      'running workflows are found by one query',
    );
    const rows = [...[...members, late, waiting].map((id) => `start ${id}`), `leave ${own}`];
    assert.deepEqual((await outbox()).toSorted(), rows.toSorted());
  });

  test('are read in pages', async () => {
    const ids = (await Promise.all([1, 2, 3].map(() => scheduled(60)))).toSorted();
    const page = async (after: string) =>
      (await findAlmostDueWorkflows(pool, after, 2)).map(({ workflow_id }) => workflow_id);
    assert.deepEqual(await page(''), ids.slice(0, 2));
    assert.deepEqual(await page(ids[1] as string), ids.slice(2));
  });

  test('get a new workflow 20 seconds after their time if theirs waits for another time', async () => {
    const late = await scheduled(-21);
    const member = await scheduled(-21, 'grp_1');
    const others = [await scheduled(-19), await scheduled(60, 'grp_1')];
    const onPurpose = await scheduled(-21);
    await pool.query(`UPDATE emails SET look_at = now() + interval '1 hour' WHERE id = $1`, [onPurpose]);
    const { putBackScheduled, terminated } = make({
      // As a workflow that a signal with a later time has reached: open, and no task of it is pending.
      findRunning: (ids) => Promise.resolve(new Set(ids)),
      describe: () => Promise.resolve('idle'),
    });
    assert.deepEqual(await putBackScheduled(), { done: 2, next: null });
    assert.deepEqual((await outbox()).toSorted(), [`leave ${late}`, `start ${member}`].toSorted());
    assert.deepEqual(terminated.toSorted(), [late, 'grp_1'].toSorted());
    const { rowCount } = await pool.query('SELECT FROM emails WHERE id = ANY ($1)', [[...others, onPurpose]]);
    assert.equal(rowCount, 3);
  });

  test('are left alone when they are late and their workflow is busy with them', async () => {
    await scheduled(-60);
    const { putBackScheduled } = make({ describe: () => Promise.resolve('running') });
    assert.deepEqual(await putBackScheduled(), { done: 0, next: null });
    assert.deepEqual(await outbox(), []);
  });

  async function scheduled(dueInSeconds: number, workflowId?: string): Promise<string> {
    const id = await acceptOne(pool, orgId, { scheduled_at: inMs(60_000) });
    await pool.query(
      `UPDATE emails SET scheduled_at = now() + make_interval(secs => $2), workflow_id = coalesce($3, id) WHERE id = $1`,
      [id, dueInSeconds, workflowId],
    );
    await pool.query('DELETE FROM outbox WHERE message_id = $1', [id]);
    return id;
  }
});

describe('open emails of a closed workflow', () => {
  type Row = [call: string, provider: string, outcome: string | null];
  async function attemptsOf(id: string): Promise<Row[]> {
    const { rows } = await pool.query<{ call: string; provider: string; outcome: string | null }>(
      'SELECT call, provider, outcome FROM attempts WHERE message_id = $1 ORDER BY n',
      [id],
    );
    return rows.map(({ call, provider, outcome }) => [call, provider, outcome]);
  }

  async function forgotten(dueInSeconds: number, status: 'queued' | 'scheduled', workflowId?: string): Promise<string> {
    const id = await acceptOne(pool, orgId, { scheduled_at: inMs(60_000) });
    await pool.query(
      `UPDATE emails SET created_at = now() - interval '1 hour', scheduled_at = now() + make_interval(secs => $2), status = $3,
                         workflow_id = coalesce($4, id) WHERE id = $1`,
      [id, dueInSeconds, status, workflowId],
    );
    await pool.query('DELETE FROM outbox WHERE message_id = $1', [id]);
    return id;
  }

  test('are looked up before they are sent, alone or in a group, overdue or almost due', async () => {
    const ids = [
      await forgotten(-660, 'queued'),
      await forgotten(-660, 'scheduled', 'grp_1'),
      await forgotten(-30, 'scheduled'),
      await forgotten(60, 'scheduled'),
    ];
    const { putBackOverdue, putBackScheduled } = make({ describe: () => Promise.resolve('closed') });
    assert.equal((await putBackOverdue()).done + (await putBackScheduled()).done, 4);
    for (const id of ids) assert.deepEqual(await attemptsOf(id), [[id, 'postmark', 'unknown']]);
  });

  for (const state of ['missing', 'idle', 'failing'] as const)
    test(`are not looked up if their workflow is ${state} instead, since Temporal has not ended them`, async () => {
      const id = await forgotten(-660, 'queued');
      const { putBackOverdue } = make({ describe: () => Promise.resolve(state) });
      assert.equal((await putBackOverdue()).done, 1);
      assert.deepEqual(await attemptsOf(id), []);
    });

  test('are asked about at the provider of their last attempt, unless that is ambiguous or was not applied', async () => {
    const cases = { again: 'unknown', lost: 'unknown', sent: undefined, refused: undefined, unknown: undefined };
    for (const [outcome, added] of Object.entries(cases)) {
      const id = await forgotten(-660, 'queued');
      await pool.query(
        `INSERT INTO attempts (message_id, n, call, provider, outcome) VALUES ($1, 1, 'call_1', 'smtp', $2)`,
        [id, outcome],
      );
      const { putBackOverdue } = make({ describe: () => Promise.resolve('closed') });
      assert.equal((await putBackOverdue()).done, 1);
      const rows: Row[] = [['call_1', 'smtp', outcome]];
      assert.deepEqual(await attemptsOf(id), added === undefined ? rows : [...rows, [id, 'smtp', added]]);
    }
  });

  test('are subject to AMBIGUOUS_SEND if no provider can be asked, but not before their time', async () => {
    const [due, later] = [await forgotten(-30, 'scheduled'), await forgotten(60, 'scheduled')];
    const { putBackScheduled } = make(
      { describe: () => Promise.resolve('closed') },
      { provider: 'smtp', canBeAsked: false },
    );
    assert.equal((await putBackScheduled()).done, 2);
    assert.deepEqual([await attemptsOf(due), await attemptsOf(later)], [[[due, 'smtp', 'unknown']], []]);
  });
});

describe('workflows whose tasks keep failing', () => {
  test('are replaced by kind, unless they have recovered', async () => {
    const email = await acceptOne(pool, orgId, { scheduled_at: inMs(3_600_000) });
    const recovered = await acceptOne(pool, orgId);
    await pool.query('DELETE FROM outbox');
    const { replaceFailing, terminated } = make({
      findFailing: () =>
        Promise.resolve([
          { id: email, type: 'deliverEmail' },
          { id: recovered, type: 'deliverEmail' },
          { id: 'grp_1', type: 'deliverGroup' },
          { id: 'upkeep-hourly', type: 'upkeep' },
        ]),
      describe: (id) => Promise.resolve(id === recovered ? 'running' : 'failing'),
    });
    assert.deepEqual(await replaceFailing(), { done: 3, next: null });
    assert.deepEqual(terminated.toSorted(), [email, 'grp_1', 'upkeep-hourly'].toSorted());
    assert.deepEqual((await outbox()).toSorted(), [`leave ${email}`]);
  });
});
