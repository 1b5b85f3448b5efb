import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { projectMessageReports } from '../../src/projection/messages.ts';
import { TemporalUnreachable, WorkflowStillOpen } from '../../src/relay/errors.ts';
import type { GroupRow, MessageRow, OutboxRow } from '../../src/store/outbox/outbox.ts';
import { acceptSms, acceptText, connect, TO } from '../store/chats.ts';
import { accept, inMs, newEmail } from '../store/mail.ts';
import { organizationFixture } from '../support/organization.ts';
import { eventually } from '../support/eventually.ts';
import { attributesOf, readHistory, RETRY, useDispatcher, useRelays } from './harness.ts';

const { pool, orgId } = await organizationFixture(10);
const from = (await connect(pool, orgId)).number;
const relays = useRelays(pool);
const isAction =
  <A extends OutboxRow['action']>(...actions: A[]) =>
  (row: OutboxRow): row is OutboxRow & { action: A } =>
    (actions as string[]).includes(row.action);

describe('chat-app messages in the outbox', () => {
  async function store(n: number): Promise<string[]> {
    const ids: string[] = [];
    for (let i = 0; i < n; i++) ids.push(await acceptText(pool, orgId, from));
    return ids;
  }

  test('are dispatched once each, also after Temporal was unreachable', async () => {
    const ids = await store(150);
    let tries = 0;
    const relay = relays.start(async () => {
      if (++tries <= 100) throw new TemporalUnreachable('away');
    });
    await relays.isEmpty();
    assert.deepEqual(relay.ids().sort(), ids);
    const { id, message_id, is_late, ...row } = relay.rows[0] as MessageRow;
    assert.ok(id && typeof is_late === 'boolean');
    const expected = { action: 'message', channel: 'chatapp', tries: 0, org_id: orgId, to: TO, type: 'text' };
    const workflow = { workflow_id: message_id, batch_id: null, is_later: false };
    assert.deepEqual(row, { ...expected, ...workflow, due_at: null, version: 0, is_open: true, traceparent: null });
  });

  test('are not open when they were reported before', async () => {
    const [id = ''] = await store(1);
    const report = { change: 'sent', messageId: id, providerMessageId: 'SM1', dedupeKey: 'SM1 sent' } as const;
    await projectMessageReports(pool, 'twilio', [report]);
    const { rows } = relays.start();
    await relays.isEmpty();
    assert.deepEqual(
      rows.filter(isAction('message')).map(({ is_open }) => is_open),
      [false],
    );
  });

  test('are dispatched again a second after their workflow was still open, which is no error', async () => {
    const [id = ''] = await store(1);
    const tries: number[] = [];
    const { lines } = relays.start(async (row) => {
      tries.push(row.tries);
      if (row.tries === 0) throw new WorkflowStillOpen('open');
    });
    await eventually('the row is deferred', async () => (await relays.rowsLeft())[0]?.tries === 1);
    assert.deepEqual(
      (await relays.rowsLeft()).map(({ message_id }) => message_id),
      [id],
    );
    await relays.isEmpty();
    assert.deepEqual([tries, lines], [[0, 1], []]);
  });

  test('have workflows of their own up to 20 a second, and share them above that, without a token of email', async () => {
    const [quiet, burst] = [await store(20), 200];
    let nowMs = 0;
    const relay = relays.start(undefined, { startsPerSecond: 20, now: () => nowMs });
    await eventually('each has its own workflow', () => relay.rows.filter(isAction('message')).length === 20);
    assert.deepEqual(relay.ids().sort(), quiet);
    const ids = await store(burst);
    const emails = Array.from({ length: 15 }, () => newEmail());
    await accept(pool, orgId, emails);
    nowMs += 1_000;
    relay.wake();
    await relays.isEmpty();
    const groups = relay.rows.filter(isAction('group'));
    const members = groups.flatMap((group) => group.members.map(({ id }) => id));
    const own = relay.rows.filter(isAction('message')).slice(20);
    assert.deepEqual([...members, ...own.map(({ message_id }) => message_id)].sort(), ids);
    assert.ok(groups.length <= 3, `${groups.length} groups`);
    assert.deepEqual(new Set(groups.map(({ channel }) => channel)), new Set(['chatapp']));
    assert.equal(relay.rows.filter(isAction('start')).length, 15);
  });

  test('share workflows with messages of their channel only', async () => {
    const [texts, sms] = [await store(60), await Promise.all(Array.from({ length: 60 }, () => acceptSms(pool, orgId)))];
    const relay = relays.start(undefined, { startsPerSecond: 20, now: () => 0 });
    await relays.isEmpty();
    const groups = relay.rows.filter(isAction('group'));
    const membersOf = (kind: string) =>
      groups.flatMap(({ channel, members }) => (channel === kind ? members.map(({ id }) => id) : [])).sort();
    assert.deepEqual([membersOf('chatapp'), membersOf('sms')], [texts.sort(), sms.sort()]);
  });

  test('that were due while no relay worked are grouped as late, those that are due now are not', async () => {
    const late = await store(60);
    await pool.query(`UPDATE chat_messages SET created_at = now() - interval '1 minute' WHERE id = ANY ($1)`, [late]);
    const fresh = await store(60);
    const relay = relays.start(undefined, { startsPerSecond: 20, now: () => 0 });
    await relays.isEmpty();
    const groups = relay.rows.filter(isAction('group'));
    assert.deepEqual(
      groups.map(({ is_late, members }) => [is_late, members.map(({ id }) => id).sort()]),
      [
        [false, fresh],
        [true, late],
      ],
    );
  });
});

describe('the dispatcher', () => {
  const { dispatch, handleOf, runOf } = useDispatcher();

  const common = { id: '1', tries: 0, org_id: 'org_1' };
  const message = (message_id: string, fields: Partial<MessageRow> = {}): MessageRow => ({
    ...{ ...common, action: 'message', message_id, channel: 'chatapp', due_at: null, version: 0 },
    ...{ batch_id: null, is_later: false, is_late: false, workflow_id: message_id },
    ...{ to: TO, type: 'template', is_open: true, traceparent: null },
    ...fields,
  });

  /** Dispatches a row until its workflow no longer counts as ending. @returns the seconds that the relay waits between the tries */
  async function dispatchUntilDone(row: MessageRow): Promise<number> {
    for (let [tries, waitSeconds] = [0, 0]; ; tries++) {
      try {
        await dispatch({ ...row, tries });
        return waitSeconds;
      } catch (error) {
        if (!(error instanceof WorkflowStillOpen)) throw error;
        waitSeconds += 2 ** tries;
      }
    }
  }

  test('starts deliverChat without the text and recipient of the message', async () => {
    const row = message('wa_1');
    await dispatch(row);
    const described = await handleOf(row).describe();
    assert.deepEqual([described.type, described.taskQueue], ['deliverChat', 'chat']);
    assert.deepEqual([described.priority?.priorityKey, described.priority?.fairnessKey], [2, 'org_1']);
    assert.equal(await described.staticSummary(), 'Chat-app message (template) to +491***89, immediately');
    assert.deepEqual(attributesOf(described), { Channel: 'chatapp', OrgId: 'org_1' });
    const { input, text } = await readHistory(handleOf(row));
    assert.deepEqual(input, { id: row.message_id, version: 0, dueAt: null, retry: RETRY, firstAttempt: 'local' });
    assert.doesNotMatch(text, /15123456789/);
  });

  test('starts no deliverChat for an ended message, and a new run only after the first has closed', async () => {
    const ended = message('wa_2', { is_open: false });
    await dispatch(ended);
    await assert.rejects(handleOf(ended).describe(), { name: 'WorkflowNotFoundError' });

    const row = message('wa_3');
    await dispatch(row);
    const first = await runOf(row);
    await dispatch(row);
    await dispatchUntilDone({ ...row, action: 'message_again' });
    assert.equal(await runOf(row), first, 'a running workflow is left alone');
    await handleOf(row).terminate();
    await dispatch({ ...row, action: 'message_again' });
    assert.notEqual(await runOf(row), first);
  });

  test('starts deliverGroup for a group of SMS, on queues of their own by whether they are late', async () => {
    const members = [{ id: 'sms_10', version: 0 }];
    const group = (message_id: string, is_late: boolean): GroupRow => ({
      ...{ id: '1', action: 'group', message_id, tries: 0, members, org_id: 'org_1', batch_id: null, channel: 'sms' },
      ...{ is_bulk: false, is_late, due_at: null, traceparents: [] },
    });
    for (const [row, taskQueue, priority] of [
      [group('grp_fresh', false), 'chat-bursts', 2],
      [group('grp_late', true), 'chat-groups', 3],
    ] as const) {
      await dispatch(row);
      const described = await handleOf(row).describe();
      assert.deepEqual([described.type, described.taskQueue], ['deliverGroup', 'messages']);
      assert.deepEqual([described.priority?.priorityKey, described.priority?.fairnessKey], [priority, 'org_1']);
      assert.deepEqual(attributesOf(described), { Channel: 'sms', OrgId: 'org_1' });
      assert.equal(await described.staticSummary(), '1 SMS, immediately');
      const { input } = await readHistory(handleOf(row));
      const expected = { id: row.message_id, members, dueAt: null, retry: RETRY, taskQueue, channel: 'sms' };
      assert.deepEqual(input, expected);
    }
  });

  test('signals no cancellation to the own workflow of an SMS that a group delivers', async () => {
    const row = message('sms_11', { channel: 'sms', due_at: inMs(3_600_000) });
    await dispatch(row);
    await dispatch({ ...row, action: 'message_cancel', workflow_id: 'grp_1' });
    assert.deepEqual((await readHistory(handleOf(row))).signals, []);
  });

  test('waits for less than 30 seconds for the end of an open run before message_again counts as done', async () => {
    const row = message('wa_4');
    await dispatch(row);
    const waitSeconds = await dispatchUntilDone({ ...row, action: 'message_again' });
    assert.ok(waitSeconds >= 5 && waitSeconds < 30, `${waitSeconds} s`);
  });

  test('an SMS that is rescheduled and canceled: starts deliverSms if there is none, and signals', async () => {
    const dueAt = inMs(3_600_000);
    const row = message('sms_1', { channel: 'sms', action: 'message_reschedule', due_at: dueAt, version: 3 });
    await dispatch(row);
    const described = await handleOf(row).describe();
    assert.deepEqual([described.type, attributesOf(described)['Channel']], ['deliverSms', 'sms']);
    assert.equal(await described.staticSummary(), `SMS to +491***89, at ${dueAt}`);
    await dispatch({ ...row, action: 'message_cancel' });
    const { events } = await handleOf(row).fetchHistory();
    const signals = events?.flatMap(({ workflowExecutionSignaledEventAttributes: signal }) => signal?.signalName ?? []);
    assert.deepEqual(signals, ['reschedule', 'cancel']);
    await dispatch({ ...message('sms_2'), action: 'message_cancel' });
  });
});
