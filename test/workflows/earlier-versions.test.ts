import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { describe, test } from 'node:test';
import type { WorkflowHandle } from '@temporalio/client';
import { bundleWorkflowCode, DefaultLogger, Worker } from '@temporalio/worker';
import { lookAgain, wake, watchDomain, webhookEndpoint } from '../../workflows/index.ts';
import { eventually } from '../support/eventually.ts';
import { useEnvironment } from './environment.ts';

const DAY = 24 * 3_600_000;
/** The workflow types that only earlier versions start. */
const TYPES = [
  { workflow: webhookEndpoint, signal: wake, taskQueue: 'webhooks', activity: 'drainEndpoint' },
  { workflow: watchDomain, signal: lookAgain, taskQueue: 'domains', activity: 'watchDomain' },
] as const;

for (const { workflow, signal, taskQueue, activity } of TYPES) {
  describe(`${workflow.name}, which only earlier versions start`, () => {
    const { env, startWorkers } = useEnvironment();

    const start = (workflowId: string) =>
      env().client.workflow.start(workflow, { workflowId, taskQueue: 'messages', args: [{ id: workflowId }] });
    const signalUntilEnded = async (handles: readonly WorkflowHandle[]) => {
      const stop = await startWorkers({});
      try {
        await Promise.all(handles.map((handle) => handle.signal(signal)));
        // Not by `result`, which skips time: up to a workflow's timeout while its worker is still busy with another one.
        for (const handle of handles) {
          const ended = await eventually('it has ended', async () => {
            const { name } = (await handle.describe()).status;
            return name !== 'RUNNING' && name;
          });
          assert.equal(ended, 'COMPLETED');
        }
      } finally {
        await stop();
      }
    };
    const pendingActivities = async (handle: WorkflowHandle) => (await handle.describe()).raw.pendingActivities ?? [];

    /** Workflows of an earlier version: one waits for a signal, one for a time, one for an activity that fails. */
    async function startEarlier(): Promise<WorkflowHandle[]> {
      const { code } = await bundleWorkflowCode({
        workflowsPath: fileURLToPath(new URL('earlier-versions.ts', import.meta.url)),
        logger: new DefaultLogger('ERROR'),
      });
      const isEndpoint = activity === 'drainEndpoint';
      const delays: Readonly<Record<string, number | null>> = { idle: isEndpoint ? null : 7 * DAY, timer: DAY };
      const waiting = new Set<string>();
      const run = async ({ id }: { readonly id: string }) => {
        if (id === 'activity') throw new Error('its worker has ended');
        waiting.add(id);
        return { state: 'asleep', inMs: delays[id] };
      };
      const common = { connection: env().nativeConnection, namespace: 'default' };
      // Nothing is cached: the test server would send further workflow tasks to the worker that has ended.
      const workers = await Promise.all([
        Worker.create({ ...common, taskQueue: 'messages', workflowBundle: { code }, maxCachedWorkflows: 0 }),
        Worker.create({ ...common, taskQueue, activities: { [activity]: run } }),
      ]);
      const running = Promise.all(workers.map((worker) => worker.run()));
      try {
        const handles = await Promise.all(['idle', 'timer', 'activity'].map(start));
        await eventually('two wait', () => waiting.size === 2);
        await eventually('only the activity of the third is pending', async () => {
          const pending = await Promise.all(handles.map(pendingActivities));
          return pending.map(({ length }) => length).join() === '0,0,1';
        });
        return handles;
      } finally {
        for (const worker of workers) worker.shutdown();
        await running;
      }
    }

    test('ends when it is started', async () => {
      const handle = await start('new');
      await signalUntilEnded([handle]);
      const { events } = await handle.fetchHistory();
      assert.ok(!events?.some((event) => event.activityTaskScheduledEventAttributes), 'it needs no activity');
    });

    test('ends when it is signaled, whether it waits for a signal, a time, or an activity that no worker runs', async () => {
      await signalUntilEnded(await startEarlier());
    });
  });
}
