import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from '@temporalio/worker';
import { describeWorkflow, openWorkflows, WORKFLOW_TYPES } from '../../src/main/wiring/workflows.ts';
import * as workflowCode from '../../workflows/index.ts';
import { eventually } from '../support/eventually.ts';
import { testNamespace } from '../support/temporal.ts';
import { silenceTemporal, workflowBundle } from '../support/workflows.ts';

test('describes a workflow as missing, running or closed', async (t) => {
  silenceTemporal();
  const { client, close } = await testNamespace();
  t.after(close);
  assert.equal(await describeWorkflow(client, 'em_1'), 'missing');
  const start = () =>
    client.workflow.start('deliverEmail', {
      workflowId: 'em_1',
      taskQueue: 'unused',
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    });
  const handle = await start();
  assert.equal(await describeWorkflow(client, 'em_1'), 'running');
  await handle.terminate();
  assert.equal(await describeWorkflow(client, 'em_1'), 'closed');
  await start();
  assert.equal(await describeWorkflow(client, 'em_1'), 'running');
});

test('signals running workflows of earlier versions', async (t) => {
  silenceTemporal();
  const { client, close } = await testNamespace();
  t.after(close);
  const start = (workflowId: string, type: string) => client.workflow.start(type, { workflowId, taskQueue: 'unused' });
  const [endpoint, domain, closed, other] = [
    await start('wh_1', 'webhookEndpoint'),
    await start('dm_1', 'watchDomain'),
    await start('wh_2', 'webhookEndpoint'),
    await start('em_1', 'deliverEmail'),
  ];
  await closed.terminate();
  const workflows = openWorkflows(() => client);
  await eventually('both are signaled', async () => (await workflows.endEarlier(10)) === 2, 60_000);
  const signalOf = async (handle: typeof domain) =>
    ((await handle.fetchHistory()).events ?? [])
      .map((event) => event.workflowExecutionSignaledEventAttributes?.signalName)
      .findLast((name) => name !== undefined);
  assert.deepEqual(
    [await signalOf(endpoint), await signalOf(domain), await signalOf(other)],
    ['wake', 'lookAgain', undefined],
  );
});

test('lists every workflow type', () => {
  const types = Object.entries(workflowCode).flatMap(([name, value]) => (typeof value === 'function' ? name : []));
  assert.deepEqual([...WORKFLOW_TYPES].sort(), types.sort());
});

test('describes a waiting workflow as idle, and finds and terminates one of Sendwright whose tasks fail', async (t) => {
  silenceTemporal();
  const { connection, namespace, client, close } = await testNamespace();
  const worker = await Worker.create({
    connection,
    namespace,
    taskQueue: 'messages',
    workflowBundle: await workflowBundle(),
  });
  const running = worker.run();
  t.after(async () => {
    worker.shutdown();
    await running;
    await close();
  });
  const workflows = openWorkflows(() => client);
  const retry = { maximumAttempts: 4, initialInterval: 1_000, maximumInterval: 4_000 };
  const dueAt = new Date(Date.now() + 3_600_000).toISOString();
  const start = (id: string, type: string) =>
    client.workflow.start(type, { workflowId: id, taskQueue: 'messages', args: [{ id, version: 0, dueAt, retry }] });
  await start('em_waits', 'deliverEmail');
  await start('em_fails', 'deliverEmail');
  await start('another-application', 'noSuchWorkflow');
  await connection.workflowService.signalWorkflowExecution({
    namespace,
    workflowExecution: { workflowId: 'em_fails' },
    signalName: 'reschedule',
    input: { payloads: [{ metadata: { encoding: Buffer.from('binary/unknown') }, data: Buffer.from('x') }] },
  });
  await eventually('the first waits', async () => (await workflows.describe('em_waits')) === 'idle', 60_000);
  for (const id of ['em_fails', 'another-application'])
    await eventually(`${id} fails`, async () => (await workflows.describe(id)) === 'failing', 120_000);
  const both = ['em_fails', 'em_waits'];
  const found = async () => [...(await workflows.findRunning([...both, 'em_unknown']))].sort();
  await eventually('both run', async () => (await found()).join() === both.join(), 60_000);
  assert.deepEqual([...(await workflows.findRunning(both))].sort(), both);
  assert.equal((await workflows.findRunning([])).size, 0);
  await eventually(
    'Temporal marks both that fail',
    async () => (await client.workflow.count('TemporalReportedProblems IS NOT NULL')).count === 2,
    120_000,
  );
  assert.deepEqual(await workflows.findFailing(10), [{ id: 'em_fails', type: 'deliverEmail' }]);
  // The second time it is already closed.
  await workflows.terminate('em_fails');
  await workflows.terminate('em_fails');
  await workflows.terminate('em_unknown');
  assert.equal(await workflows.describe('em_fails'), 'closed');
  await eventually('the closed workflow is not listed', async () => (await found()).join() === 'em_waits', 60_000);
});

test('does not count a workflow as failing whose tasks time out, as they do while workers are overloaded', async (t) => {
  silenceTemporal();
  const { connection, namespace, client, close } = await testNamespace();
  t.after(close);
  await client.workflow.start('deliverEmail', {
    workflowId: 'em_1',
    taskQueue: 'unanswered',
    workflowTaskTimeout: '1s',
  });
  // Takes tasks and never answers.
  const taskQueue = { name: 'unanswered' };
  const isMarked = async () =>
    (await client.workflow.count("WorkflowId = 'em_1' AND TemporalReportedProblems IS NOT NULL")).count === 1;
  await eventually(
    'Temporal marks it',
    async () => {
      await connection.workflowService.pollWorkflowTaskQueue({ namespace, taskQueue });
      return isMarked();
    },
    240_000,
  );
  assert.deepEqual(await openWorkflows(() => client).findFailing(10), []);
});
