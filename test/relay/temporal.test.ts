import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { makeTemporalDispatcher, SEARCH_ATTRIBUTES } from '../../src/relay/temporal.ts';
import { TemporalUnreachable } from '../../src/relay/errors.ts';
import type { EmailRow, GroupRow, OutboxRow } from '../../src/store/outbox/outbox.ts';
import { inMs } from '../store/mail.ts';
import { eventually } from '../support/eventually.ts';
import { provided } from '../support/provided.ts';
import type { TestNamespace } from '../support/temporal.ts';
import type { DeliverGroup } from '../../workflows/index.ts';
import { attributesOf, readHistory, RETRY, useDispatcher } from './harness.ts';
import { closedPort } from '../providers/servers.ts';

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
    is_later: false,
    is_late: false,
    version: 0,
    is_open: true,
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
    channel: 'email',
    is_bulk: true,
    is_late: false,
    due_at: null,
    traceparents: [],
    ...fields,
  };
}

describe('the dispatcher', { concurrency: true }, () => {
  const { namespace, dispatch, handleOf, runOf } = useDispatcher();
  const isThere = (row: OutboxRow) =>
    handleOf(row)
      .describe()
      .then(
        () => true,
        () => false,
      );

  test('an email gets a workflow with its id and without its content', async () => {
    const dueAt = inMs(HOUR);
    const row = outboxRow({ due_at: dueAt, version: 3, batch_id: 'bt_1', more_to: 2 });
    await dispatch(row);
    const described = await handleOf(row).describe();
    assert.deepEqual(
      [described.type, described.taskQueue, described.status.name],
      ['deliverEmail', 'email', 'RUNNING'],
    );
    assert.equal(await described.staticSummary(), `Email to j***@example.net and 2 more, at ${dueAt}`);
    assert.deepEqual(attributesOf(described), { OrgId: 'org_1', Channel: 'email', BatchId: 'bt_1' });
    const { input, signals } = await readHistory(handleOf(row));
    assert.deepEqual(input, { id: row.message_id, version: 3, dueAt, retry: RETRY, firstAttempt: 'local' });
    assert.deepEqual(signals, []);
    assert.doesNotMatch(JSON.stringify(await handleOf(row).fetchHistory()), /jane\.doe/i);
  });

  test('a requested maintenance task runs in one workflow at a time', async () => {
    const row: OutboxRow = { id: '1', action: 'chore', message_id: 'foldBatchMoves', tries: 0, more_ids: [] };
    await Promise.all([dispatch(row), dispatch(row)]);
    const handle = namespace().client.workflow.getHandle('upkeep-foldBatchMoves');
    const { type, taskQueue, runId } = await handle.describe();
    assert.deepEqual([type, taskQueue], ['upkeep', 'messages']);
    assert.deepEqual((await readHistory(handle)).input, ['foldBatchMoves']);
    await handle.terminate();
    await dispatch(row);
    assert.notEqual((await handle.describe()).runId, runId);
  });

  test('summarizes an immediate email to one recipient', async () => {
    const row = outboxRow();
    await dispatch(row);
    const described = await handleOf(row).describe();
    assert.equal(await described.staticSummary(), 'Email to j***@example.net, immediately');
    assert.ok(!('BatchId' in attributesOf(described)));
  });

  test('a repeated start succeeds and starts nothing while the workflow is open, and another run after it has closed', async () => {
    const row = outboxRow({ due_at: inMs(HOUR) });
    await dispatch(row);
    const run = await runOf(row);
    await dispatch(row);
    assert.equal(await runOf(row), run);
    await handleOf(row).terminate();
    await dispatch(row);
    const described = await handleOf(row).describe();
    assert.notEqual(described.runId, run, 'its claim decides whether anything is left to send');
    assert.equal(described.status.name, 'RUNNING');
  });

  test('no workflow is started or signaled for an ended email', async () => {
    for (const action of ['start', 'reschedule'] as const) {
      const row = outboxRow({ action, is_open: false });
      await dispatch(row);
      assert.equal(await isThere(row), false);
    }
  });

  test('a reschedule is signaled to the running workflow', async () => {
    const row = outboxRow({ due_at: inMs(HOUR) });
    await dispatch(row);
    const run = await runOf(row);
    const dueAt = inMs(2 * HOUR);
    await dispatch({ ...row, action: 'reschedule', version: 1, due_at: dueAt });
    assert.equal(await runOf(row), run);
    const { input, signals } = await readHistory(handleOf(row));
    assert.deepEqual((input as { version: number }).version, 0);
    assert.deepEqual(signals, [['reschedule', { version: 1, dueAt }]]);
  });

  test('a reschedule starts the workflow when there is none or it has ended', async () => {
    const dueAt = inMs(HOUR);
    const row = outboxRow({ action: 'reschedule', version: 1, due_at: dueAt });
    await dispatch(row);
    const { input, signals } = await readHistory(handleOf(row));
    assert.deepEqual(input, { id: row.message_id, version: 1, dueAt, retry: RETRY, firstAttempt: 'local' });
    assert.deepEqual(signals, [['reschedule', { version: 1, dueAt }]]);
    const run = await runOf(row);
    await handleOf(row).terminate();
    await dispatch(row);
    assert.notEqual(await runOf(row), run);
    assert.equal((await handleOf(row).describe()).status.name, 'RUNNING');
  });

  test('a start after a reschedule starts nothing', async () => {
    const row = outboxRow({ action: 'reschedule', version: 1, due_at: inMs(HOUR) });
    await dispatch(row);
    const run = await runOf(row);
    await dispatch({ ...row, action: 'start' });
    assert.equal(await runOf(row), run);
    assert.equal((await readHistory(handleOf(row))).signals.length, 1);
  });

  test('an email that is detached from its group gets a workflow, also if it had one before, and one at a time', async () => {
    const row = outboxRow({ action: 'leave' });
    await dispatch(row);
    const run = await runOf(row);
    await dispatch(row);
    assert.equal(await runOf(row), run);
    await handleOf(row).terminate();
    await dispatch(row);
    assert.notEqual(await runOf(row), run);
  });

  test('a group gets one workflow, with ids and versions only', async () => {
    const due_at = inMs(HOUR);
    const members = [
      { id: 'em_1', version: 0 },
      { id: 'em_2', version: 3 },
    ];
    const row = groupRow({ members, due_at });
    await dispatch(row);
    await dispatch(row);
    const handle = handleOf(row);
    const { input } = await readHistory(handle);
    assert.deepEqual(input, { id: row.message_id, members, dueAt: due_at, retry: RETRY, taskQueue: 'email-groups' });
    const described = await handle.describe();
    assert.equal(described.type, 'deliverGroup');
    assert.equal(await described.staticSummary(), `2 emails of batch bt_1, at ${due_at}`);
    assert.deepEqual(attributesOf(described), { OrgId: 'org_1', Channel: 'email', BatchId: 'bt_1' });
    await handle.terminate();
    await dispatch(row);
    assert.equal((await handle.describe()).status.name, 'TERMINATED');
  });

  test('a group of several organizations and batches names none of them', async () => {
    const row = groupRow({ org_id: null, batch_id: null, is_bulk: false });
    await dispatch(row);
    const described = await handleOf(row).describe();
    assert.equal(await described.staticSummary(), '1 email, immediately');
    assert.deepEqual(attributesOf(described), { Channel: 'email' });
  });

  test('a group of single emails does not wait for the activity slots of batches', async () => {
    const row = groupRow({ batch_id: null, is_bulk: false });
    await dispatch(row);
    const { input } = await readHistory(handleOf(row));
    assert.equal((input as DeliverGroup).taskQueue, 'email-bursts');
  });

  test('single emails have priority over batches, and organizations share fairly', async () => {
    const priorityOf = async (row: OutboxRow) => {
      await dispatch(row);
      return (await handleOf(row).describe()).priority;
    };
    const { priorityKey: single, fairnessKey } = (await priorityOf(outboxRow())) ?? {};
    const { priorityKey: member } = (await priorityOf(outboxRow({ batch_id: 'bt_1' }))) ?? {};
    const { priorityKey: singles } = (await priorityOf(groupRow({ is_bulk: false }))) ?? {};
    const { priorityKey: bulk } = (await priorityOf(groupRow())) ?? {};
    assert.equal(fairnessKey, 'org_1');
    assert.equal(single, singles);
    assert.equal(member, bulk);
    assert.ok((single ?? 9) < (bulk ?? 0), 'a lower key goes first');
  });

  test('a cancellation is signaled to the workflow of the email, and not to that of a group', async () => {
    const row = outboxRow({ due_at: inMs(HOUR) });
    await dispatch(row);
    await dispatch({ ...row, action: 'cancel', is_open: false, workflow_id: 'grp_1' });
    await dispatch({ ...row, action: 'cancel', is_open: false });
    assert.deepEqual((await readHistory(handleOf(row))).signals, [['cancel', undefined]]);
  });

  test('a cancellation without a workflow or after its end succeeds', async () => {
    const row = outboxRow({ action: 'cancel', is_open: false });
    await dispatch(row);
    assert.equal(await isThere(row), false);
    await dispatch({ ...row, action: 'start', is_open: true });
    await handleOf(row).terminate();
    await dispatch(row);
  });

  test('a refusal of Temporal is not TemporalUnreachable', async () => {
    const bare = await bareNamespace(namespace());
    const refused = makeTemporalDispatcher(new Client({ connection: namespace().connection, namespace: bare }), RETRY);
    await assert.rejects(refused(outboxRow()), (error) => !(error instanceof TemporalUnreachable));
    await namespace().connection.operatorService.deleteNamespace({ namespace: bare });
  });

  test('a missing namespace is TemporalUnreachable, since it concerns every row', async () => {
    const client = new Client({ connection: namespace().connection, namespace: 'no-such-place' });
    const elsewhere = makeTemporalDispatcher(client, RETRY);
    for (const action of ['start', 'reschedule', 'cancel'] as const)
      await assert.rejects(elsewhere(outboxRow({ action })), TemporalUnreachable, action);
  });
});

/** A namespace without our search attributes. */
async function bareNamespace({ connection, namespace }: TestNamespace): Promise<string> {
  const bare = `${namespace}-bare`;
  const workflowExecutionRetentionPeriod = { seconds: 86_400 } as never;
  await connection.workflowService.registerNamespace({ namespace: bare, workflowExecutionRetentionPeriod });
  return bare;
}

test('a message whose run accepts no more signals is rescheduled by a new run, and can be canceled', async (t) => {
  const server = await startServer(t, ['--dynamic-config-value', 'history.maximumSignalsPerExecution=3']);
  const connection = await NativeConnection.connect({ address: server.address });
  t.after(() => connection.close());
  const client = new Client({ connection });
  const dispatch = makeTemporalDispatcher(client, RETRY);
  const row = outboxRow({ action: 'reschedule' });
  const dueAt = (version: number) => inMs(version * HOUR);
  for (const version of [1, 2, 3]) await dispatch({ ...row, version, due_at: dueAt(version) });
  const handle = client.workflow.getHandle(row.message_id);
  const { runId } = await handle.describe();
  await dispatch({ ...row, action: 'cancel' });
  assert.equal((await readHistory(handle)).signals.length, 3);

  const last = { ...row, version: 4, due_at: dueAt(4) };
  await dispatch(last);
  assert.equal((await client.workflow.getHandle(row.message_id, runId).describe()).status.name, 'TERMINATED');
  const { input, signals } = await readHistory(handle);
  const expected = { id: row.message_id, version: 4, dueAt: last.due_at, retry: RETRY, firstAttempt: 'local' };
  assert.deepEqual([input, signals], [expected, []]);
});

describe('Temporal is unreachable', { concurrency: true }, () => {
  const ACTIONS = ['start', 'reschedule', 'cancel'] as const;

  test('since nothing listens at its address', async (t) => {
    const connection = Connection.lazy({ address: `127.0.0.1:${await closedPort()}` });
    t.after(() => connection.close());
    const dispatch = makeTemporalDispatcher(new Client({ connection }), RETRY);
    await assert.rejects(dispatch(outboxRow()), TemporalUnreachable);
  });

  for (const code of [7, 16])
    test(`since it refuses the credentials with gRPC code ${code}`, async (t) => {
      const server = createServer().on('stream', (stream) => {
        const headers = { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': String(code) };
        stream.respond(headers, { endStream: true });
      });
      await once(server.listen(0, '127.0.0.1'), 'listening');
      const connection = Connection.lazy({ address: `127.0.0.1:${(server.address() as AddressInfo).port}` });
      t.after(async () => {
        await connection.close();
        server.close();
      });
      const dispatch = makeTemporalDispatcher(new Client({ connection }), RETRY);
      await assert.rejects(dispatch(outboxRow()), TemporalUnreachable);
    });

  for (const [cause, stop] of [
    ['it was killed, and works again after its start', 'kill'],
    ['it does not answer before the deadline', 'freeze'],
  ] as const)
    test(`for every action since ${cause}`, async (t) => {
      const server = await startServer(t);
      const connection = await NativeConnection.connect({ address: server.address });
      t.after(() => connection.close());
      const dispatch = makeTemporalDispatcher(new Client({ connection }), RETRY);
      const works = () =>
        eventually('it starts a workflow', () =>
          dispatch(outboxRow()).then(
            () => true,
            () => false,
          ),
        );
      await works();
      await server[stop]();
      await Promise.all(
        ACTIONS.map((action) => assert.rejects(dispatch(outboxRow({ action })), TemporalUnreachable, action)),
      );
      if (stop === 'freeze') return;
      await server.start();
      await works();
    });
});

/** A development server of Temporal that can be killed. */
async function startServer(t: TestContext, more: readonly string[] = []) {
  const port = await closedPort();
  let child: ChildProcess;
  const start = async () => {
    const attributes = SEARCH_ATTRIBUTES.flatMap((name) => ['--search-attribute', `${name}=Keyword`]);
    const options = ['--headless', '--ip', '127.0.0.1', '--port', String(port), '--log-level', 'never', ...attributes];
    child = spawn(provided('TEMPORAL_CLI_PATH'), ['server', 'start-dev', ...options, ...more], { stdio: 'ignore' });
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
