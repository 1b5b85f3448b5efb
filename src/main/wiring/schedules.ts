import { type Client, ScheduleAlreadyRunning, type ScheduleOptions, ScheduleOverlapPolicy } from '@temporalio/client';
import { msToNumber } from '@temporalio/common/lib/time.js';
import type { Logger } from 'pino';
import type { Chore } from '../../../workflows/index.ts';
import { startLoop } from '../../lib/background-loop.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { registerUpkeepTasks, type UpkeepTask } from '../../store/upkeep/tasks.ts';

/** The intervals of maintenance tasks by the id of their schedule. */
const UPKEEP: Readonly<Record<string, { readonly every: string; readonly chores: readonly Chore[] }>> = {
  'upkeep-counts': { every: '1 minute', chores: ['foldBatchMoves', 'announceBatches', 'wakeEndpoints'] },
  'upkeep-stuck': {
    every: '5 minutes',
    chores: ['clearProviderLists', 'wakeDomains', 'clearProviderDomains'],
  },
  // Separate schedules: querying a provider about thousands of emails takes hours and must not delay other tasks.
  'upkeep-rescue': { every: '1 minute', chores: ['putBackOverdue', 'putBackOverdueChats', 'replaceFailing'] },
  'upkeep-scheduled': { every: '30 seconds', chores: ['putBackScheduled'] },
  'upkeep-reports': { every: '5 minutes', chores: ['reconcileSent'] },
  'upkeep-chats': { every: '1 minute', chores: ['reconcileChats'] },
  'upkeep-hourly': {
    every: '1 hour',
    chores: [
      'expireAttachments',
      'sweepFiles',
      'expireBodies',
      'deleteExpiredKeys',
      'deleteOldCallbacks',
      'deleteOldDeliveries',
      'deleteExpiredSignIns',
    ],
  },
  'upkeep-daily': { every: '24 hours', chores: ['reportUnknownFiles'] },
};

/** The schedules are recreated at this interval if Temporal's database has lost them. */
const ENSURE_EVERY_MS = 60_000;

export interface ScheduleDeps {
  readonly client: Client;
  readonly pool: Pool;
  /** Adds the search attributes that the namespace lacks. */
  readonly ensureSearchAttributes: () => Promise<void>;
  readonly log: Logger;
}

/**
 * Creates missing schedules and search attributes until it is stopped. Also registers the maintenance tasks in Postgres, so that
 * the metrics show a task that never runs.
 * @returns a function that stops it
 */
export function keepSchedules(deps: ScheduleDeps, everyMs = ENSURE_EVERY_MS): () => Promise<void> {
  let isUpdated = false;
  const step = async (): Promise<void> => {
    await registerUpkeepTasks(deps.pool, upkeepTasks());
    await deps.ensureSearchAttributes();
    await ensureSchedules(deps.client, { update: !isUpdated });
    isUpdated = true;
  };
  return startLoop(everyMs, step, (error) => deps.log.error({ err: error }, 'upkeep schedules could not be ensured'));
}

/** All maintenance tasks with their intervals. */
export function upkeepTasks(): UpkeepTask[] {
  return Object.values(UPKEEP).flatMap(({ every, chores }) =>
    chores.map((name) => ({ name, intervalSeconds: msToNumber(every as '1 minute') / 1_000 })),
  );
}

/**
 * Creates missing upkeep schedules. With `update` it also updates existing ones to this version; paused schedules stay paused.
 * Workers may run it concurrently.
 */
export async function ensureSchedules(
  { schedule: schedules }: Client,
  { update }: { readonly update: boolean } = { update: true },
): Promise<void> {
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
      // After an outage, only the latest missed run is caught up.
      policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: every as '1 minute' },
    } as const satisfies Omit<ScheduleOptions, 'scheduleId'>;
    try {
      await schedules.create({ scheduleId, ...plan });
    } catch (error) {
      if (!(error instanceof ScheduleAlreadyRunning)) throw error;
      if (!update) continue;
      await schedules.getHandle(scheduleId).update(({ state }) => ({ ...plan, state }));
    }
  }
}
