import { ActivityFailure, ApplicationFailure, proxyActivities } from '@temporalio/workflow';
import type { UpkeepActivities } from '../activities/index.ts';

/** A maintenance task, by the name of its activity. */
export type UpkeepTaskName = keyof UpkeepActivities;

const activities = proxyActivities<UpkeepActivities>({
  taskQueue: 'upkeep',
  startToCloseTimeout: '5 minutes',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute', maximumAttempts: 10 },
});

/**
 * Limits the steps of one task in one run; the next run continues. A step adds six events to the history, of which Temporal allows
 * 51,200, so a run of tasks that may all need this many steps has at most eight of them.
 */
const MAX_STEPS = 1_000;

/**
 * Runs maintenance tasks one after the other, each in steps until nothing is left. A failure does not stop the other tasks.
 * @returns the number of items that each has processed
 */
export async function upkeep(tasks: readonly UpkeepTaskName[]): Promise<Partial<Record<UpkeepTaskName, number>>> {
  const done: Partial<Record<UpkeepTaskName, number>> = {};
  const failed: UpkeepTaskName[] = [];
  for (const task of tasks) {
    done[task] = 0;
    try {
      let from: string | null = null;
      for (let step = 0; step < MAX_STEPS; step++) {
        const result: Awaited<ReturnType<UpkeepActivities[UpkeepTaskName]>> = await activities[task](from);
        done[task] += result.done;
        from = result.next;
        if (from === null) break;
      }
    } catch (error) {
      if (!(error instanceof ActivityFailure)) throw error;
      failed.push(task);
    }
  }
  if (failed.length > 0)
    throw ApplicationFailure.nonRetryable(`${failed.join(', ')} failed`, 'MaintenanceTasksFailed', done);
  return done;
}
