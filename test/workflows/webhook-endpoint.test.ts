import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { describe, test } from 'node:test';
import type { WorkflowHandle } from '@temporalio/client';
import { bundleWorkflowCode, DefaultLogger, Worker } from '@temporalio/worker';
import { wake, webhookEndpoint } from '../../workflows/index.ts';
import { eventually } from '../support/eventually.ts';
import { useEnvironment } from './environment.ts';

describe('webhookEndpoint, which only earlier versions start', () => {
  const { env, startWorkers } = useEnvironment();

  const start = (workflowId: string) =>
    env().client.workflow.start(webhookEndpoint, { workflowId, taskQueue: 'messages', args: [{ id: workflowId }] });
  const wakeUntilEnded = async (handles: readonly WorkflowHandle[]) => {
    const stop = await startWorkers({});
    try {
      await Promise.all(handles.map((handle) => handle.signal(wake)));
      await Promise.all(handles.map((handle) => handle.result()));
    } finally {
      await stop();
    }
  };
  const pendingActivities = async (handle: WorkflowHandle) => (await handle.describe()).raw.pendingActivities ?? [];

  test('ends when it is started', async () => {
    const handle = await start('wh_new');
    await wakeUntilEnded([handle]);
    const { events } = await handle.fetchHistory();
    assert.ok(!events?.some((event) => event.activityTaskScheduledEventAttributes), 'it needs no activity');
  });

  test('ends when it is woken, whether it waits for a signal, a time, or an activity that no worker runs', async () => {
    const { code } = await bundleWorkflowCode({
      workflowsPath: fileURLToPath(new URL('earlier-webhook-endpoint.ts', import.meta.url)),
      logger: new DefaultLogger('ERROR'),
    });
    const ids = ['wh_idle', 'wh_timer', 'wh_activity'];
    const delays: Readonly<Record<string, number | null>> = { wh_idle: null, wh_timer: 24 * 3_600_000 };
    const drained = new Set<string>();
    const drainEndpoint = async ({ id }: { readonly id: string }) => {
      if (id === 'wh_activity') throw new Error('its worker has ended');
      drained.add(id);
      return { state: 'asleep', inMs: delays[id] };
    };
    const common = { connection: env().nativeConnection, namespace: 'default' };
    // Nothing is cached: the test server would send further workflow tasks to the worker that has ended.
    const earlier = await Promise.all([
      Worker.create({ ...common, taskQueue: 'messages', workflowBundle: { code }, maxCachedWorkflows: 0 }),
      Worker.create({ ...common, taskQueue: 'webhooks', activities: { drainEndpoint } }),
    ]);
    const running = Promise.all(earlier.map((worker) => worker.run()));
    let handles: WorkflowHandle[];
    try {
      handles = await Promise.all(ids.map(start));
      await eventually('two wait', () => drained.size === 2);
      await eventually('only the activity of the third is pending', async () => {
        const pending = await Promise.all(handles.map(pendingActivities));
        return pending.map(({ length }) => length).join() === '0,0,1';
      });
    } finally {
      for (const worker of earlier) worker.shutdown();
      await running;
    }
    await wakeUntilEnded(handles);
  });
});
