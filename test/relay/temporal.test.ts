import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, describe, test, type TestContext } from 'node:test';
import { Client, Connection, type WorkflowExecutionDescription, type WorkflowHandle } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { makeTemporalDispatcher, SEARCH_ATTRIBUTES } from '../../src/relay/temporal.ts';
import { TemporalUnreachable } from '../../src/relay/relay.ts';
import type { EmailRow, GroupRow, OutboxRow } from '../../src/store/outbox/outbox.ts';
import { eventually } from '../support/eventually.ts';
import { provided } from '../support/provided.ts';
import { testNamespace, type TestNamespace } from '../support/temporal.ts';
import { silenceTemporal } from '../support/workflows.ts';
import { closedPort } from '../providers/servers.ts';
import { lived } from '../support/lived.ts';

const RETRY = { maximumAttempts: 16, initialInterval: 2_000, maximumInterval: 1_800_000 };
const HOUR = 3_600_000;
let count = 0;

function outboxRow(fields: Partial<EmailRow> = {}): EmailRow {
  const message_id = `em_${Date.now()}_${++count}`;
  return {
    id: '1',
    action: 'start',
    message_id,
    workflow_id: message_id,
    tries: 0,
    org_id: 'org_1',
    batch_id: null,
    first_to: 'Jane Doe <jane.doe@example.net>',
    more_to: 0,
    due_at: null,
    waits: false,
    version: 0,
    open: true,
    traceparent: null,
    ...fields,
  };
}

function groupRow(fields: Partial<GroupRow> = {}): GroupRow {
  return {
    id: '1',
    action: 'group',
    message_id: `grp_${Date.now()}_${++count}`,
    tries: 0,
    members: [{ id: 'em_1', version: 0 }],
    org_id: 'org_1',
    batch_id: 'bt_1',
    bulk: true,
    due_at: null,
    traceparents: [],
    ...fields,
  };
}

function attributesOf({ typedSearchAttributes }: WorkflowExecutionDescription): Record<string, unknown> {
  return Object.fromEntries(typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]));
}

before(() => silenceTemporal());

describe('what Temporal is asked for', { concurrency: true }, () => {
  let namespace: TestNamespace;
  let client: Client;
  let carry: (row: OutboxRow) => Promise<void>;

  before(async () => {
    namespace = await testNamespace();
    client = namespace.client;
    carry = makeTemporalDispatcher(client, RETRY);
  });
  after(() => namespace.close());

  const handleOf = (row: OutboxRow) => client.workflow.getHandle(row.message_id);
  const runOf = async (row: OutboxRow) => (await handleOf(row).describe()).runId;
  const isThere = (row: OutboxRow) =>
    handleOf(row)
      .describe()
      .then(
        () => true,
        () => false,
      );

  /** What a workflow was started with, and the signals that it got. */
  async function story(handle: WorkflowHandle): Promise<{ input: unknown; signals: [string, unknown][] }> {
    const { events } = await handle.fetchHistory();
    const decode = (payload: { data?: Uint8Array | null } | undefined): unknown =>
      payload?.data ? JSON.parse(Buffer.from(payload.data).toString()) : undefined;
    const started = events?.[0]?.workflowExecutionStartedEventAttributes;
    const signals = (events ?? []).flatMap(({ workflowExecutionSignaledEventAttributes: signal }) =>
      signal ? [[signal.signalName ?? '', decode(signal.input?.payloads?.[0])] as [string, unknown]] : [],
    );
    return { input: decode(started?.input?.payloads?.[0]), signals };
  }

  test('an email gets a workflow of its own id, with nothing of it but what Temporal needs', async () => {
    const dueAt = new Date(Date.now() + HOUR).toISOString();
    const row = outboxRow({ due_at: dueAt, version: 3, batch_id: 'bt_1', more_to: 2 });
    await carry(row);
    const described = await handleOf(row).describe();
    assert.deepEqual(
      [described.type, described.taskQueue, described.status.name],
      ['deliverEmail', 'messages', 'RUNNING'],
    );
    assert.equal(await described.staticSummary(), `Email to j***@example.net and 2 more, at ${dueAt}`);
    const attributes = new Map(described.typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]));
    assert.deepEqual(
      [attributes.get('OrgId'), attributes.get('Channel'), attributes.get('BatchId'), attributes.has('Provider')],
      ['org_1', 'email', 'bt_1', false],
    );
    const { input, signals } = await story(handleOf(row));
    assert.deepEqual(input, { id: row.message_id, version: 3, dueAt, retry: RETRY });
    assert.deepEqual(signals, []);
    assert.doesNotMatch(JSON.stringify(await handleOf(row).fetchHistory()), /jane\.doe/i);
  });

  test('a chore that shall not wait is done by a workflow of its own, one at a time', async () => {
    const row: OutboxRow = { id: '1', action: 'chore', message_id: 'foldBatchMoves', tries: 0, more_ids: [] };
    await Promise.all([carry(row), carry(row)]);
    const handle = client.workflow.getHandle('upkeep-foldBatchMoves');
    const { type, taskQueue, runId } = await handle.describe();
    assert.deepEqual([type, taskQueue], ['upkeep', 'messages']);
    assert.deepEqual((await story(handle)).input, ['foldBatchMoves']);
    await handle.terminate();
    await carry(row);
    assert.notEqual((await handle.describe()).runId, runId);
  });

  test('an email that is due at once and goes to one says so', async () => {
    const row = outboxRow();
    await carry(row);
    const described = await handleOf(row).describe();
    assert.equal(await described.staticSummary(), 'Email to j***@example.net, at once');
    const names = described.typedSearchAttributes.getAll().map(({ key }) => key.name);
    assert.ok(!names.includes('BatchId'));
  });

  test('a start that is repeated is a success and starts nothing', async () => {
    const row = outboxRow({ due_at: new Date(Date.now() + HOUR).toISOString() });
    await carry(row);
    const run = await runOf(row);
    await carry(row);
    assert.equal(await runOf(row), run);
  });

  test('a start that is repeated after its workflow has closed starts nothing either', async () => {
    const row = outboxRow();
    await carry(row);
    const run = await runOf(row);
    await handleOf(row).terminate();
    await carry(row);
    const described = await handleOf(row).describe();
    assert.deepEqual([described.runId, described.status.name], [run, 'TERMINATED']);
  });

  test('nothing is started or moved for an email that has ended', async () => {
    for (const action of ['start', 'reschedule'] as const) {
      const row = outboxRow({ action, open: false });
      await carry(row);
      assert.equal(await isThere(row), false);
    }
  });

  test('another time is told to the workflow that waits', async () => {
    const row = outboxRow({ due_at: new Date(Date.now() + HOUR).toISOString() });
    await carry(row);
    const run = await runOf(row);
    const dueAt = new Date(Date.now() + 2 * HOUR).toISOString();
    await carry({ ...row, action: 'reschedule', version: 1, due_at: dueAt });
    assert.equal(await runOf(row), run);
    const { input, signals } = await story(handleOf(row));
    assert.deepEqual((input as { version: number }).version, 0);
    assert.deepEqual(signals, [['reschedule', { version: 1, dueAt }]]);
  });

  test('another time starts the workflow when there is none, as for a member of a group', async () => {
    const dueAt = new Date(Date.now() + HOUR).toISOString();
    const row = outboxRow({ action: 'reschedule', version: 1, due_at: dueAt });
    await carry(row);
    const { input, signals } = await story(handleOf(row));
    assert.deepEqual(input, { id: row.message_id, version: 1, dueAt, retry: RETRY });
    assert.deepEqual(signals, [['reschedule', { version: 1, dueAt }]]);
    const described = await handleOf(row).describe();
    assert.equal(await described.staticSummary(), `Email to j***@example.net, at ${dueAt}`);
  });

  test('another time starts a new run when the workflow was ended by hand', async () => {
    const row = outboxRow({ due_at: new Date(Date.now() + HOUR).toISOString() });
    await carry(row);
    const run = await runOf(row);
    await handleOf(row).terminate();
    await carry({ ...row, action: 'reschedule', version: 1 });
    assert.notEqual(await runOf(row), run);
    assert.equal((await handleOf(row).describe()).status.name, 'RUNNING');
  });

  test('a start after another time, as relays may swap them, starts nothing', async () => {
    const row = outboxRow({ action: 'reschedule', version: 1, due_at: new Date(Date.now() + HOUR).toISOString() });
    await carry(row);
    const run = await runOf(row);
    await carry({ ...row, action: 'start' });
    assert.equal(await runOf(row), run);
    assert.equal((await story(handleOf(row))).signals.length, 1);
  });

  test('an email that left its group gets a workflow, also when it had one before, and only one at a time', async () => {
    const row = outboxRow({ action: 'leave' });
    await carry(row);
    const run = await runOf(row);
    await carry(row);
    assert.equal(await runOf(row), run);
    await handleOf(row).terminate();
    await carry(row);
    assert.notEqual(await runOf(row), run);
  });

  test('a group gets one workflow, with ids and versions alone', async () => {
    const due_at = new Date(Date.now() + HOUR).toISOString();
    const members = [
      { id: 'em_1', version: 0 },
      { id: 'em_2', version: 3 },
    ];
    const row = groupRow({ members, due_at });
    await carry(row);
    await carry(row);
    const handle = client.workflow.getHandle(row.message_id);
    const { input } = await story(handle);
    assert.deepEqual(input, { id: row.message_id, members, dueAt: due_at, retry: RETRY });
    const described = await handle.describe();
    assert.equal(described.type, 'deliverGroup');
    assert.equal(await described.staticSummary(), `2 emails of batch bt_1, at ${due_at}`);
    assert.deepEqual(attributesOf(described), { OrgId: 'org_1', Channel: 'email', BatchId: 'bt_1' });
    await handle.terminate();
    await carry(row);
    assert.equal((await handle.describe()).status.name, 'TERMINATED');
  });

  test('a group of several organizations and batches names none', async () => {
    const row = groupRow({ org_id: null, batch_id: null, bulk: false });
    await carry(row);
    const described = await client.workflow.getHandle(row.message_id).describe();
    assert.equal(await described.staticSummary(), '1 email, at once');
    assert.deepEqual(attributesOf(described), { Channel: 'email' });
  });

  test('single emails stand before batches, and organizations share fairly', async () => {
    const priorityOf = async (row: OutboxRow) => {
      await carry(row);
      return (await client.workflow.getHandle(row.message_id).describe()).priority;
    };
    const { priorityKey: single, fairnessKey } = (await priorityOf(outboxRow())) ?? {};
    const { priorityKey: member } = (await priorityOf(outboxRow({ batch_id: 'bt_1' }))) ?? {};
    const { priorityKey: singles } = (await priorityOf(groupRow({ bulk: false }))) ?? {};
    const { priorityKey: bulk } = (await priorityOf(groupRow())) ?? {};
    assert.equal(fairnessKey, 'org_1');
    assert.equal(single, singles);
    assert.equal(member, bulk);
    assert.ok((single ?? 9) < (bulk ?? 0), 'a lower key goes first');
  });

  test('a cancellation of what a group carries is not told: it finds out when it is due', async () => {
    const row = outboxRow({ due_at: new Date(Date.now() + HOUR).toISOString() });
    await carry(row);
    await carry({ ...row, action: 'cancel', open: false, workflow_id: 'grp_1' });
    assert.deepEqual((await story(handleOf(row))).signals, []);
  });

  test('a cancellation is told to the workflow that waits', async () => {
    const row = outboxRow({ due_at: new Date(Date.now() + HOUR).toISOString() });
    await carry(row);
    await carry({ ...row, action: 'cancel', open: false });
    assert.deepEqual((await story(handleOf(row))).signals, [['cancel', undefined]]);
  });

  test('a cancellation without a workflow, or after it, is a success', async () => {
    const row = outboxRow({ action: 'cancel', open: false });
    await carry(row);
    assert.equal(await isThere(row), false);
    await carry({ ...row, action: 'start', open: true });
    await handleOf(row).terminate();
    await carry(row);
  });

  test('what Temporal refuses about a row is not taken for its absence', async () => {
    const elsewhere = makeTemporalDispatcher(
      new Client({ connection: namespace.connection, namespace: 'no-such-place' }),
      RETRY,
    );
    for (const action of ['start', 'reschedule', 'cancel'] as const)
      await assert.rejects(
        elsewhere(outboxRow({ action })),
        (error) => !(error instanceof TemporalUnreachable),
        action,
      );
    const bare = await bareNamespace(namespace);
    const refused = makeTemporalDispatcher(new Client({ connection: namespace.connection, namespace: bare }), RETRY);
    await assert.rejects(refused(outboxRow()), (error) => !(error instanceof TemporalUnreachable));
    await namespace.connection.operatorService.deleteNamespace({ namespace: bare });
  });
});

/** A namespace without our search attributes. */
async function bareNamespace({ connection, namespace }: TestNamespace): Promise<string> {
  const bare = `${namespace}-bare`;
  const workflowExecutionRetentionPeriod = { seconds: 86_400 } as never;
  await connection.workflowService.registerNamespace({ namespace: bare, workflowExecutionRetentionPeriod });
  return bare;
}

describe('a Temporal that is away', { concurrency: true }, () => {
  const ACTIONS = ['start', 'reschedule', 'cancel'] as const;

  test('since nobody listens there', async (t) => {
    const connection = Connection.lazy({ address: `127.0.0.1:${await closedPort()}` });
    t.after(() => connection.close());
    const carry = makeTemporalDispatcher(new Client({ connection }), RETRY);
    await assert.rejects(carry(outboxRow()), TemporalUnreachable);
  });

  test('since it was killed is unreachable for every action, and works again when it is back', async (t) => {
    const server = await startServer(t);
    const connection = await NativeConnection.connect({ address: server.address });
    t.after(() => connection.close());
    const carry = makeTemporalDispatcher(new Client({ connection }), RETRY);
    await eventually('it takes a workflow', () =>
      carry(outboxRow()).then(
        () => true,
        () => false,
      ),
    );
    await server.kill();
    await Promise.all(
      ACTIONS.map((action) => assert.rejects(carry(outboxRow({ action })), TemporalUnreachable, action)),
    );
    await server.start();
    await eventually(
      'it takes a workflow',
      () =>
        carry(outboxRow()).then(
          () => true,
          () => false,
        ),
      20_000,
    );
  });

  test('since it does not answer is unreachable within its deadline', async (t) => {
    const server = await startServer(t);
    const connection = await NativeConnection.connect({ address: server.address });
    t.after(() => connection.close());
    const carry = makeTemporalDispatcher(new Client({ connection }), RETRY);
    await eventually('it takes a workflow', () =>
      carry(outboxRow()).then(
        () => true,
        () => false,
      ),
    );
    server.freeze();
    const began = lived();
    await Promise.all(
      ACTIONS.map((action) => assert.rejects(carry(outboxRow({ action })), TemporalUnreachable, action)),
    );
    assert.ok(lived() - began < 15_000, `${lived() - began} ms`);
  });
});

/** A development server of Temporal that can be killed. */
async function startServer(t: TestContext) {
  const port = await closedPort();
  let child: ChildProcess;
  const start = async () => {
    const attributes = SEARCH_ATTRIBUTES.flatMap((name) => ['--search-attribute', `${name}=Keyword`]);
    const options = ['--headless', '--ip', '127.0.0.1', '--port', String(port), '--log-level', 'never', ...attributes];
    child = spawn(provided('TEMPORAL_CLI_PATH'), ['server', 'start-dev', ...options], { stdio: 'ignore' });
    await eventually('the server listens', async () => {
      const connection = await NativeConnection.connect({ address: `127.0.0.1:${port}` }).catch(() => undefined);
      await connection?.close();
      return connection !== undefined;
    });
  };
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  t.after(kill);
  await start();
  return { address: `127.0.0.1:${port}`, start, kill, freeze: () => child.kill('SIGSTOP') };
}
