import { proxyActivities } from '@temporalio/workflow';

/** A workflow with one activity, neither of which does anything. @param taskQueue the activity's */
export async function nothing(taskQueue: string): Promise<void> {
  const { rest } = proxyActivities<{ rest: () => Promise<void> }>({ taskQueue, startToCloseTimeout: '1 minute' });
  await rest();
}
