import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';

/** A workflow with one activity, neither of which does anything. @param taskQueue the activity's */
export async function nothing(taskQueue: string): Promise<void> {
  const { rest } = proxyActivities<{ rest: () => Promise<void> }>({ taskQueue, startToCloseTimeout: '1 minute' });
  await rest();
}

/** The same with a local activity. */
export async function nothingLocally(): Promise<void> {
  const { rest } = proxyLocalActivities<{ rest: () => Promise<void> }>({ startToCloseTimeout: '1 minute' });
  await rest();
}
