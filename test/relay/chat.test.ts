import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { projectChatReports } from '../../src/projection/chat.ts';
import { type Relay, type RelayDeps, startRelay, TemporalUnreachable } from '../../src/relay/relay.ts';
import { makeTemporalDispatcher } from '../../src/relay/temporal.ts';
import type { ChatRow, OutboxRow } from '../../src/store/outbox/outbox.ts';
import { acceptText, connect, TO } from '../store/chats.ts';
import { accept, newEmail, organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { testNamespace, type TestNamespace } from '../support/temporal.ts';
import { silenceTemporal } from '../support/workflows.ts';

const { pool } = await useDatabase(10);
const orgId = await organization(pool);
const from = (await connect(pool, orgId)).number;

describe('the relay carries chat-app messages', () => {
  const relays: Relay[] = [];
  afterEach(async () => {
    await Promise.all(relays.splice(0).map((relay) => relay.stop()));
    await pool.query('DELETE FROM outbox');
  });

  function start(act: (row: OutboxRow) => Promise<void> = async () => undefined, deps: Partial<RelayDeps> = {}) {
    const carried: OutboxRow[] = [];
    const relay = startRelay({
      pool,
      log: pino({ level: 'silent' }),
      dispatch: async (row) => {
        await act(row);
        carried.push(row);
      },
      startsPerSecond: 1_000_000,
      ...deps,
    });
    relays.push(relay);
    const of = (action: OutboxRow['action']) => carried.filter((row) => row.action === action);
    return { relay, carried, chats: () => of('chat'), emails: () => [...of('start'), ...of('group')] };
  }

  async function leave(n: number): Promise<string[]> {
    const ids: string[] = [];
    for (let i = 0; i < n; i++) ids.push(await acceptText(pool, orgId, from));
    return ids;
  }

  const isEmpty = async () => (await pool.query('SELECT FROM outbox')).rowCount === 0;

  test('each once, with what Temporal needs', async () => {
    const ids = await leave(150);
    const { chats } = start();
    await eventually('the outbox is empty', isEmpty);
    assert.deepEqual(
      chats()
        .map(({ message_id }) => message_id)
        .sort(),
      ids,
    );
    const row = chats()[0] as ChatRow;
    const common = {
      id: row.id,
      action: 'chat',
      tries: 0,
      again: false,
      org_id: orgId,
      to: TO,
      type: 'text',
      open: true,
      traceparent: null,
    };
    assert.deepEqual(row, { message_id: row.message_id, ...common });
  });

  test('that were reported before they were started are not open', async () => {
    const [id = ''] = await leave(1);
    const report = { change: 'sent', messageId: id, providerMessageId: 'SM1', dedupeKey: 'SM1 sent' } as const;
    await projectChatReports(pool, 'twilio', [report]);
    const { chats } = start();
    await eventually('the outbox is empty', isEmpty);
    assert.deepEqual(
      chats().map((row) => row.action === 'chat' && row.open),
      [false],
    );
  });

  test('and keeps them while Temporal is away', async () => {
    await leave(3);
    let isAway = true;
    const { chats } = start(async () => {
      if (isAway) throw new TemporalUnreachable('away');
    });
    await sleep(100);
    assert.equal(await isEmpty(), false);
    isAway = false;
    await eventually('the outbox is empty', isEmpty);
    assert.equal(chats().length, 3);
  });

  test('within a budget of their own: a burst of them takes nothing from email, nor email from them', async () => {
    await leave(200);
    const emails = Array.from({ length: 120 }, () => newEmail());
    let began = performance.now();
    const { relay, chats, emails: carriedEmails } = start(undefined, { startsPerSecond: 20 });
    await accept(pool, orgId, emails);
    relay.wake();
    await eventually('the emails are carried', () => carriedEmails().length > 0, 2_000);
    await eventually('a budget of messages is carried', () => chats().length >= 50, 2_000);
    const income = () => (20 * (performance.now() - began)) / 1_000;
    assert.ok(chats().length < 100 + income(), `${chats().length} at once`);
    const before = chats().length;
    began = performance.now();
    await sleep(1_000);
    const more = chats().length - before;
    assert.ok(more > 0 && more <= 25 + income(), `${more} in a second of 20`);
    const { rowCount } = await pool.query(`SELECT FROM outbox WHERE action NOT IN ('chat')`);
    assert.equal(rowCount, 0, 'no email waits');
  });
});

describe('what Temporal is asked for', () => {
  const RETRY = { maximumAttempts: 16, initialInterval: 2_000, maximumInterval: 1_800_000 };
  let namespace: TestNamespace;
  let carry: (row: OutboxRow) => Promise<void>;
  before(async () => {
    silenceTemporal();
    namespace = await testNamespace();
    carry = makeTemporalDispatcher(namespace.client, RETRY);
  });
  after(() => namespace.close());

  let count = 0;
  const chatRow = (fields: Partial<ChatRow> = {}): ChatRow => ({
    id: '1',
    action: 'chat',
    message_id: `wa_${++count}`,
    tries: 0,
    again: false,
    org_id: 'org_1',
    to: TO,
    type: 'template',
    open: true,
    traceparent: null,
    ...fields,
  });
  const handleOf = ({ message_id }: OutboxRow) => namespace.client.workflow.getHandle(message_id);

  test('a workflow of the message’s id, which tells neither its text nor its recipient', async () => {
    const row = chatRow();
    await carry(row);
    const described = await handleOf(row).describe();
    assert.deepEqual(
      [described.type, described.taskQueue, described.priority],
      [
        'deliverChat',
        'messages',
        { priorityKey: 2, fairnessKey: 'org_1', fairnessWeight: described.priority?.fairnessWeight },
      ],
    );
    assert.equal(await described.staticSummary(), 'Chat-app message (template) to +491***89');
    const attributes = Object.fromEntries(
      described.typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]),
    );
    assert.deepEqual([attributes['Channel'], attributes['OrgId']], ['chatapp', 'org_1']);
    const { events } = await handleOf(row).fetchHistory();
    const [payload] = events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads ?? [];
    assert.deepEqual(JSON.parse(Buffer.from(payload?.data ?? []).toString()), { id: row.message_id, retry: RETRY });
    assert.doesNotMatch(JSON.stringify(events), /15123456789/);
  });

  test('none for a message that has ended; not again, unless it is put back', async () => {
    const ended = chatRow({ open: false });
    await carry(ended);
    await assert.rejects(handleOf(ended).describe(), { name: 'WorkflowNotFoundError' });

    const row = chatRow();
    await carry(row);
    const runOf = async () => (await handleOf(row).describe()).runId;
    const first = await runOf();
    await carry(row);
    await carry({ ...row, again: true });
    assert.equal(await runOf(), first, 'one that runs is left alone');
    await handleOf(row).terminate();
    await carry(row);
    assert.equal(await runOf(), first, 'a start that is repeated starts nothing');
    await carry({ ...row, again: true });
    assert.notEqual(await runOf(), first);
  });
});
