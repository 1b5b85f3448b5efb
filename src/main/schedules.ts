import { type Client, ScheduleAlreadyRunning, type ScheduleOptions, ScheduleOverlapPolicy } from '@temporalio/client';
import type { Chore } from '../../workflows/index.ts';

/** When chores are done, by the id of their schedule. */
const UPKEEP: Readonly<Record<string, { readonly every: string; readonly chores: readonly Chore[] }>> = {
  'upkeep-counts': { every: '1 minute', chores: ['foldBatchMoves', 'announceBatches', 'wakeEndpoints'] },
  'upkeep-stuck': {
    every: '5 minutes',
    chores: [
      'putBackOverdue',
      'putBackOverdueChats',
      'clearProviderLists',
      'reconcileSent',
      'wakeDomains',
      'clearProviderDomains',
    ],
  },
  'upkeep-chats': { every: '1 minute', chores: ['reconcileChats'] },
  'upkeep-hourly': {
    every: '1 hour',
    chores: ['expireAttachments', 'expireBodies', 'deleteExpiredKeys', 'deleteOldCallbacks', 'deleteOldDeliveries'],
  },
  'upkeep-daily': { every: '24 hours', chores: ['sweepFiles'] },
};

/**
 * Makes the schedules of upkeep, or brings those of an earlier version up to date. What somebody has paused stays
 * paused. Any number of workers may do it at the same time.
 */
export async function ensureSchedules({ schedule: schedules }: Client): Promise<void> {
  for (const [scheduleId, { every, chores }] of Object.entries(UPKEEP)) {
    const plan = {
      spec: { intervals: [{ every: every as '1 minute' }], jitter: '5 seconds' },
      action: {
        type: 'startWorkflow',
        workflowType: 'upkeep',
        workflowId: scheduleId,
        taskQueue: 'messages',
        args: [chores],
        workflowExecutionTimeout: '1 day',
      },
      // The last run is made up for where it was missed, and no more than that.
      policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: every as '1 minute' },
    } as const satisfies Omit<ScheduleOptions, 'scheduleId'>;
    try {
      await schedules.create({ scheduleId, ...plan });
    } catch (error) {
      if (!(error instanceof ScheduleAlreadyRunning)) throw error;
      await schedules.getHandle(scheduleId).update(({ state }) => ({ ...plan, state }));
    }
  }
}
