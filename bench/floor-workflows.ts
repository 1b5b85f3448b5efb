import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';

/** A workflow with one activity, both of which do nothing. @param taskQueue the activity's task queue */
export async function nothing(taskQueue: string): Promise<void> {
  const { rest } = proxyActivities<{ rest: () => Promise<void> }>({ taskQueue, startToCloseTimeout: '1 minute' });
  await rest();
}

/** A workflow with one local activity, both of which do nothing. */
export async function nothingLocally(): Promise<void> {
  const { rest } = proxyLocalActivities<{ rest: () => Promise<void> }>({ startToCloseTimeout: '1 minute' });
  await rest();
}
