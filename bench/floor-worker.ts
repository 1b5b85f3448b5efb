import { fileURLToPath } from 'node:url';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';

/**
 * The process that runs `nothing` and `nothingLocally` with the service's limits of concurrent tasks. Arguments: address, and the task
 * queues of workflows and of activities.
 */
const [address = '', workflows = '', activities = ''] = process.argv.slice(2);

Runtime.install({ logger: new DefaultLogger('ERROR'), shutdownSignals: [] });
const rest = async (): Promise<void> => undefined;
const connection = await NativeConnection.connect({ address });
const workers = await Promise.all([
  Worker.create({
    connection,
    taskQueue: workflows,
    workflowsPath: fileURLToPath(new URL('floor-workflows.ts', import.meta.url)),
    activities: { rest },
    maxConcurrentWorkflowTaskPolls: 20,
    maxConcurrentWorkflowTaskExecutions: 100,
    nonStickyToStickyPollRatio: 0.5,
    maxCachedWorkflows: 1_000,
    maxConcurrentActivityTaskExecutions: 200,
    maxConcurrentActivityTaskPolls: 20,
  }),
  Worker.create({
    connection,
    taskQueue: activities,
    activities: { rest },
    maxConcurrentActivityTaskExecutions: 200,
    maxConcurrentActivityTaskPolls: 20,
  }),
]);
process.once('disconnect', () => {
  for (const worker of workers) worker.shutdown();
});
process.send?.('ready');
await Promise.all(workers.map((worker) => worker.run()));
await connection.close();
