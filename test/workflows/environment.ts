import { after, before } from 'node:test';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { timeSkipping } from '../support/time-skipping.ts';
import { silenceTemporal, workflowBundle } from '../support/workflows.ts';

/** The time-skipping server of a suite, and its workers. */
export function useEnvironment() {
  let env: TestWorkflowEnvironment;
  let bundle: { readonly codePath: string };
  before(async () => {
    silenceTemporal();
    env = await timeSkipping();
    bundle = await workflowBundle();
  });
  after(() => env.teardown());

  /**
   * Starts a worker of the workflows of groups, and one for each task queue of activities and their workflows. Nothing is
   * cached: each task replays the history from its beginning, like a worker after a restart.
   * @returns a function that stops them
   */
  async function startWorkers(queues: Readonly<Record<string, object>>) {
    const { nativeConnection: connection } = env;
    const common = { connection, namespace: 'default', workflowBundle: bundle, maxCachedWorkflows: 0 };
    const workers = await Promise.all([
      Worker.create({ ...common, taskQueue: 'messages' }),
      ...Object.entries(queues).map(([taskQueue, activities]) => Worker.create({ ...common, taskQueue, activities })),
    ]);
    const running = Promise.all(workers.map((worker) => worker.run()));
    return async () => {
      for (const worker of workers) worker.shutdown();
      await running;
    };
  }

  return {
    startWorkers,
    /** Defined once the suite runs. */
    env: () => env,
    now: () => env.currentTimeMs(),
    sleep: (ms: number) => env.sleep(ms),
  };
}
