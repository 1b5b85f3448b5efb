import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, Connection } from '@temporalio/client';
import { inFuture } from '../http/service.ts';
import { eventually } from '../support/eventually.ts';
import { clientOf, emptyHome, readInbox, startSendwright } from '../support/start.ts';

/** Milliseconds until all emails are due. In this time upkeep finds those without a workflow. */
const DUE_IN_MS = 120_000;
/** Milliseconds after its time within which an email must leave. */
const LATE_MS = 60_000;

test('scheduled emails leave on time after their workflows were terminated, deleted or confused', async (t) => {
  const started = await startSendwright(t, await emptyHome());
  const dev = await started.dev();
  const api = clientOf(dev);
  const connection = await Connection.connect({ address: dev.temporal_address });
  t.after(() => connection.close());
  const { workflow } = new Client({ connection, namespace: dev.temporal_namespace });

  const scheduledAt = inFuture({ ms: DUE_IN_MS });
  const faults: Readonly<Record<string, (id: string) => Promise<unknown>>> = {
    untouched: () => Promise.resolve(),
    terminated: (id) => workflow.getHandle(id).terminate(),
    deleted: (id) =>
      connection.workflowService.deleteWorkflowExecution({
        namespace: dev.temporal_namespace,
        workflowExecution: { workflowId: id },
      }),
    malformed: (id) => workflow.getHandle(id).signal<[unknown]>('reschedule', null),
    ahead: (id) =>
      workflow.getHandle(id).signal('reschedule', { version: 99, dueAt: new Date(Date.now() - 60_000).toISOString() }),
    // Bytes that no converter knows: the workflow task fails before our code can read them.
    undecodable: (id) =>
      connection.workflowService.signalWorkflowExecution({
        namespace: dev.temporal_namespace,
        workflowExecution: { workflowId: id },
        signalName: 'reschedule',
        input: { payloads: [{ metadata: { encoding: Buffer.from('binary/unknown') }, data: Buffer.from('x') }] },
      }),
  };
  const names = Object.keys(faults);
  for (const [name, act] of Object.entries(faults)) {
    const { id } = await api.emails.send({
      from: dev.from,
      to: `${name}@example.net`,
      subject: 'On time',
      text: 'Hi.',
      scheduled_at: scheduledAt,
    });
    await eventually(`the workflow of ${name} waits`, async () => {
      const state = await workflow
        .getHandle(id)
        .describe()
        .catch(() => undefined);
      return state?.status.name === 'RUNNING' && !state.raw.pendingWorkflowTask;
    });
    await act(id);
  }

  const ours = async () =>
    (await readInbox(dev)).filter(({ to }) => names.some((name) => to[0] === `${name}@example.net`));
  await eventually(
    'all have left',
    async () => new Set((await ours()).map(({ to }) => to[0])).size === names.length,
    DUE_IN_MS + 2 * LATE_MS,
  );
  const messages = await ours();
  assert.equal(messages.length, names.length, 'each once');
  for (const { to, received_at: at } of messages) {
    const lateMs = Date.parse(at) - Date.parse(scheduledAt);
    t.diagnostic(`${String(to[0])}: ${lateMs} ms after its time`);
    assert.ok(lateMs >= 0 && lateMs < LATE_MS, `${String(to[0])} left ${lateMs} ms after its time`);
  }
});
