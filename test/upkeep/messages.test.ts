import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { pino } from 'pino';
import { makeMessageUpkeep } from '../../src/upkeep/messages.ts';
import type { Workflows, WorkflowState } from '../../src/upkeep/workflow-state.ts';
import { rescheduleMessage } from '../../src/intake/messages.ts';
import { projectMessages, projectMessageReports } from '../../src/projection/messages.ts';
import { deleteOutbox, groupOutboxRows, lockMessageRows } from '../../src/store/outbox/outbox.ts';
import { transaction } from '../../src/store/postgres/pool.ts';
import { acceptText, chatRow, connect } from '../store/chats.ts';
import { inMs } from '../store/mail.ts';
import { contents } from '../support/contents.ts';
import { organizationFixture } from '../support/organization.ts';
import { ScriptedChat } from '../delivery/chat-harness.ts';
import { fakeWorkflows } from './workflows.ts';

const { pool, orgId } = await organizationFixture(5);
const from = (await connect(pool, orgId)).number;
beforeEach(() => pool.query('TRUNCATE chat_messages, outbox'));

function make(state: WorkflowState = 'missing', overrides: Partial<Workflows> = {}) {
  const provider = new ScriptedChat();
  const { workflows, described, terminated } = fakeWorkflows(overrides, state);
  const tasks = makeMessageUpkeep({
    pool,
    contents,
    providerOf: () => provider,
    requestIntervalMs: 0,
    workflows,
    log: pino({ level: 'silent' }),
  });
  return {
    provider,
    described,
    terminated,
    reconcileChats: () => tasks.reconcileChats(),
    putBackOverdueChats: () => tasks.putBackOverdueChats(),
  };
}

/** Lets minutes pass for a message. */
async function makeOlder(id: string, minutes: number): Promise<void> {
  await pool.query(
    `UPDATE chat_messages SET created_at = created_at - $2::float8 * interval '1 minute',
       last_event_at = last_event_at - $2::float8 * interval '1 minute', look_at = look_at - $2::float8 * interval '1 minute'
     WHERE id = $1`,
    [id, minutes],
  );
}

describe('messages without a report', () => {
  /** A message that was sent so many minutes ago. @returns its id */
  async function taken(minutes: number, provider: 'twilio' | 'meta' = 'twilio'): Promise<string> {
    const id = await acceptText(pool, orgId, from);
    await projectMessages(pool, 'sent', [{ id, provider, provider_message_id: `SM of ${id}`, dedupe_key: '' }]);
    await makeOlder(id, minutes);
    return id;
  }

  test('are left for the next step after its deadline', async (t) => {
    await Promise.all([taken(3), taken(3), taken(3)]);
    let now = performance.now();
    t.mock.method(performance, 'now', () => now);
    const { provider, reconcileChats } = make();
    provider.reportOf = () => {
      now += 70_000;
      return undefined;
    };
    assert.deepEqual([(await reconcileChats()).done, (await reconcileChats()).done], [2, 1]);
  });

  test('are looked up at Twilio after two minutes, and the report is applied', async () => {
    const { provider, reconcileChats } = make();
    await taken(1);
    await taken(30, 'meta');
    await acceptText(pool, orgId, from);
    const id = await taken(3);
    provider.reportOf = (messageId) => {
      assert.equal(messageId, `SM of ${id}`);
      return { change: 'delivered', messageId: id, providerMessageId: messageId, dedupeKey: `${messageId} delivered` };
    };
    assert.deepEqual(await reconcileChats(), { done: 1, next: null });
    const { status, look_in } = await chatRow(pool, id);
    assert.deepEqual([status, look_in], ['delivered', null]);
    assert.deepEqual(await reconcileChats(), { done: 0, next: null });
    assert.equal(provider.asked, 1);
  });

  test('are looked up less and less often, for three days', async () => {
    const { provider, reconcileChats } = make();
    const id = await taken(2);
    const waits: (number | null)[] = [];
    for (;;) {
      await makeOlder(id, 0.1);
      assert.equal((await reconcileChats()).done, 1);
      const { look_in } = await chatRow(pool, id);
      waits.push(look_in);
      if (look_in === null) break;
      await makeOlder(id, look_in - 1);
      assert.equal((await reconcileChats()).done, 0);
      await makeOlder(id, 1.5);
    }
    assert.deepEqual(waits.slice(0, 4), [2, 5, 10, 21]);
    assert.ok(Math.max(...waits.map(Number)) <= 1_440);
    assert.equal(provider.asked, waits.length);
    assert.ok(waits.length < 20, `${waits.length} questions`);
  });

  test('whose lookup fails do not block others', async () => {
    const { provider, reconcileChats } = make();
    const [first, second] = [await taken(4), await taken(3)];
    provider.reportOf = (messageId) => {
      if (messageId.endsWith(first)) throw new Error('not now');
      return { change: 'read', messageId: second, providerMessageId: messageId, dedupeKey: `${messageId} read` };
    };
    assert.deepEqual(await reconcileChats(), { done: 2, next: null });
    assert.equal((await chatRow(pool, second)).status, 'read');
    assert.ok(((await chatRow(pool, first)).look_in ?? 0) >= 3, 'deferred like others');
  });
});

describe('overdue messages', () => {
  /** A message that was accepted so many minutes ago, without an outbox row. */
  async function left(minutes: number, scheduledAt: string | null = null): Promise<string> {
    const id = await acceptText(pool, orgId, from, {}, scheduledAt);
    await pool.query('DELETE FROM outbox');
    await makeOlder(id, minutes);
    return id;
  }

  /** A scheduled message that has been due for 20 minutes, without an outbox row. */
  async function overdueScheduled(): Promise<string> {
    const id = await left(80, inMs(3_600_000));
    await pool.query(`UPDATE chat_messages SET scheduled_at = scheduled_at - interval '80 minutes' WHERE id = $1`, [
      id,
    ]);
    return id;
  }

  test('get a new workflow after ten minutes when theirs is missing', async () => {
    const { described, putBackOverdueChats } = make();
    const id = await left(11);
    await left(9);
    assert.deepEqual(await putBackOverdueChats(), { done: 1, next: null });
    assert.deepEqual(described, [id]);
    await transaction(pool, async (client) => {
      const rows = await lockMessageRows(client, 10);
      assert.deepEqual(
        rows.map((row) => [row.message_id, row.action, row.is_open]),
        [[id, 'message_again', true]],
      );
      await deleteOutbox(
        client,
        rows.map((row) => row.id),
      );
    });
    assert.deepEqual(await putBackOverdueChats(), { done: 0, next: null }, 'checked again later');
  });

  test('of a group leave it when its workflow is missing', async () => {
    const { described, putBackOverdueChats } = make();
    const ids = [await left(11), await left(11)];
    await pool.query(`UPDATE chat_messages SET workflow_id = 'grp_1'`);
    assert.deepEqual(await putBackOverdueChats(), { done: 2, next: null });
    assert.deepEqual(described, ['grp_1']);
    const rows = await transaction(pool, (client) => lockMessageRows(client, 10));
    assert.deepEqual(
      rows.map((row) => [row.message_id, row.action, row.workflow_id]),
      ids.map((id) => [id, 'message_again', id]),
    );
  });

  test('of a group that waits in the outbox are left to it', async () => {
    const { described, putBackOverdueChats } = make();
    const id = await left(11);
    await pool.query(`INSERT INTO outbox (message_id, action) VALUES ($1, 'message')`, [id]);
    const [row] = await transaction(pool, (client) => lockMessageRows(client, 1));
    const members = [{ outboxId: row?.id ?? null, id, version: 0 }];
    await groupOutboxRows(pool, [{ id: 'grp_1', isLate: false, members }], 'chat_messages');
    assert.deepEqual([(await putBackOverdueChats()).done, described], [0, []]);
  });

  for (const state of ['failing', 'idle'] as const) {
    test(`get a new workflow when theirs is ${state}, which is terminated`, async () => {
      const { terminated, putBackOverdueChats } = make(state);
      const id = await left(11);
      assert.deepEqual(await putBackOverdueChats(), { done: 1, next: null });
      assert.deepEqual(terminated, [id]);
      const { rows } = await pool.query('SELECT message_id, action FROM outbox');
      assert.deepEqual(rows, [{ message_id: id, action: 'message_again' }]);
    });
  }

  test('are looked up before they are sent if their workflow has closed, since Postgres may have forgotten a call', async () => {
    const { putBackOverdueChats } = make('closed');
    const [forgotten, answered] = [await left(11), await left(11)];
    await pool.query(
      `INSERT INTO attempts (message_id, n, call, provider, outcome) VALUES ($1, 1, 'c', 'twilio', 'sent')`,
      [answered],
    );
    assert.equal((await putBackOverdueChats()).done, 2);
    const { rows } = await pool.query(
      'SELECT message_id, call, provider, outcome FROM attempts WHERE message_id = ANY ($1) ORDER BY message_id',
      [[forgotten, answered]],
    );
    assert.deepEqual(rows, [
      { message_id: forgotten, call: forgotten, provider: 'twilio', outcome: 'unknown' },
      { message_id: answered, call: 'c', provider: 'twilio', outcome: 'sent' },
    ]);
    const { rowCount } = await pool.query('SELECT FROM outbox');
    assert.equal(rowCount, 2);
  });

  test('that cannot be checked do not block others', async () => {
    const [broken, other] = [await left(12), await left(11)];
    const describe = async (id: string): Promise<WorkflowState> => {
      if (id === broken) throw new Error('not now');
      return 'missing';
    };
    await assert.rejects(make('running', { describe }).putBackOverdueChats(), /not now/);
    const { rows } = await pool.query('SELECT message_id, action FROM outbox');
    assert.deepEqual(rows, [{ message_id: other, action: 'message_again' }]);
  });

  test('are not checked before they are due again if they are rescheduled during the check', async () => {
    const id = await overdueScheduled();
    const time = inMs(7 * 24 * 3_600_000);
    const describe = async (): Promise<WorkflowState> => {
      await rescheduleMessage({ pool, wakeRelay: () => undefined }, orgId, 'chatapp', id, time);
      return 'running';
    };
    assert.equal((await make('running', { describe }).putBackOverdueChats()).done, 1);
    await pool.query('DELETE FROM outbox');
    assert.equal((await chatRow(pool, id)).look_in, 7 * 24 * 60 + 10);
    const { terminated, putBackOverdueChats } = make('idle');
    assert.equal((await putBackOverdueChats()).done, 0);
    assert.deepEqual(terminated, []);
  });

  test('do not include scheduled messages that are not due, also if a check is', async () => {
    const id = await left(0, inMs(3_600_000));
    await pool.query('UPDATE chat_messages SET look_at = now() WHERE id = $1', [id]);
    assert.equal((await make('idle').putBackOverdueChats()).done, 0);
  });

  test('of a suspended organization are not changed', async () => {
    const { described, putBackOverdueChats } = make();
    await left(30);
    await pool.query('UPDATE organizations SET suspended_at = now() WHERE id = $1', [orgId]);
    assert.equal((await putBackOverdueChats()).done, 0);
    assert.deepEqual(described, []);
    await pool.query('UPDATE organizations SET suspended_at = NULL WHERE id = $1', [orgId]);
  });

  test('are not changed if they have a running workflow, an outbox row or a report', async () => {
    const { putBackOverdueChats } = make('running');
    await left(30);
    assert.equal((await putBackOverdueChats()).done, 1);
    const waiting = await acceptText(pool, orgId, from);
    await makeOlder(waiting, 30);
    const reported = await acceptText(pool, orgId, from);
    await pool.query('DELETE FROM outbox WHERE message_id = $1', [reported]);
    await makeOlder(reported, 30);
    const report = { change: 'sent', messageId: reported, providerMessageId: 'SM1', dedupeKey: 'SM1 sent' } as const;
    await projectMessageReports(pool, 'twilio', [report]);
    assert.equal((await putBackOverdueChats()).done, 0);
    const { rows } = await pool.query('SELECT message_id, action FROM outbox');
    assert.deepEqual(rows, [{ message_id: waiting, action: 'message' }]);
  });
});
