import { isDeepStrictEqual } from 'node:util';
import { type Client, ScheduleAlreadyRunning, type ScheduleOptions, ScheduleOverlapPolicy } from '@temporalio/client';
import type { Logger } from 'pino';
import type { UpkeepTaskName } from '../../../workflows/index.ts';
import { startLoop } from '../../lib/background-loop.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { registerUpkeepTasks, type UpkeepTask } from '../../store/upkeep/tasks.ts';

const MINUTE_MS = 60_000;

/** The intervals of maintenance tasks by the id of their schedule. */
const UPKEEP_INTERVALS: Readonly<
  Record<string, { readonly intervalMs: number; readonly tasks: readonly UpkeepTaskName[] }>
> = {
  'upkeep-counts': { intervalMs: MINUTE_MS, tasks: ['foldBatchMoves', 'announceBatches', 'endEarlierWorkflows'] },
  'upkeep-statistics': { intervalMs: MINUTE_MS, tasks: ['backfillStatistics'] },
  'upkeep-stuck': {
    intervalMs: 5 * MINUTE_MS,
    tasks: ['clearProviderLists', 'clearProviderDomains'],
  },
  // Separate schedules: querying a provider about thousands of emails takes hours and must not delay other tasks.
  'upkeep-rescue': { intervalMs: MINUTE_MS, tasks: ['putBackOverdue', 'putBackOverdueChats', 'replaceFailing'] },
  'upkeep-scheduled': { intervalMs: 30_000, tasks: ['putBackScheduled'] },
  'upkeep-reports': { intervalMs: 5 * MINUTE_MS, tasks: ['reconcileSent'] },
  'upkeep-chats': { intervalMs: MINUTE_MS, tasks: ['reconcileChats'] },
  // Of these, a large service has more in an hour than a run has steps, and their backlog must not delay other tasks.
  'upkeep-bodies': { intervalMs: 5 * MINUTE_MS, tasks: ['expireBodies'] },
  'upkeep-deliveries': { intervalMs: 10 * MINUTE_MS, tasks: ['deleteOldDeliveries'] },
  'upkeep-keys': { intervalMs: 10 * MINUTE_MS, tasks: ['deleteExpiredKeys'] },
  'upkeep-hourly': {
    intervalMs: 60 * MINUTE_MS,
    tasks: [
      'expireAttachments',
      'sweepFiles',
      'addPartitions',
      'expireEmails',
      'rotateRequestLog',
      'deleteOldCallbacks',
      'deleteExpiredSignIns',
      'deleteOldStatistics',
    ],
  },
  'upkeep-daily': { intervalMs: 24 * 60 * MINUTE_MS, tasks: ['reportUnknownFiles', 'deleteOldErasures'] },
};

/** Schedules that Temporal's database has lost are recreated at this interval. */
const ENSURE_INTERVAL_MS = 60_000;

interface ScheduleDeps {
  readonly client: Client;
  readonly pool: Pool;
  readonly ensureSearchAttributes: () => Promise<void>;
  readonly log: Logger;
}

/**
 * Ensures the schedules and search attributes repeatedly until it is stopped. Also registers the maintenance tasks in
 * Postgres, so that the metrics show a task that has never run.
 */
export function keepSchedules(deps: ScheduleDeps, everyMs = ENSURE_INTERVAL_MS): () => Promise<void> {
  let isUpdated = false;
  const step = async (): Promise<void> => {
    await registerUpkeepTasks(deps.pool, upkeepTasks());
    await deps.ensureSearchAttributes();
    await ensureSchedules(deps.client, { update: !isUpdated });
    isUpdated = true;
  };
  return startLoop(everyMs, step, (error) => deps.log.error({ err: error }, 'upkeep schedules could not be ensured'));
}

export function upkeepTasks(): UpkeepTask[] {
  return Object.values(UPKEEP_INTERVALS).flatMap(({ intervalMs, tasks }) =>
    tasks.map((name) => ({ name, intervalSeconds: intervalMs / 1_000 })),
  );
}

/**
 * Creates missing upkeep schedules, and restores the tasks of those that a worker of another version has changed. With `update` it
 * updates all existing ones to this version. Paused schedules stay paused. Workers may run it concurrently.
 */
export async function ensureSchedules(
  { schedule: schedules }: Client,
  { update }: { readonly update: boolean } = { update: true },
): Promise<void> {
  for (const [scheduleId, { intervalMs, tasks }] of Object.entries(UPKEEP_INTERVALS)) {
    const plan = {
      spec: { intervals: [{ every: intervalMs }], jitter: '5 seconds' },
      action: {
        type: 'startWorkflow',
        workflowType: 'upkeep',
        workflowId: scheduleId,
        taskQueue: 'messages',
        args: [tasks],
        workflowExecutionTimeout: '1 day',
      },
      // After an outage, only the latest missed run is executed.
      policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: intervalMs },
    } as const satisfies Omit<ScheduleOptions, 'scheduleId'>;
    try {
      await schedules.create({ scheduleId, ...plan });
    } catch (error) {
      if (!(error instanceof ScheduleAlreadyRunning)) throw error;
      const handle = schedules.getHandle(scheduleId);
      if (!update && isDeepStrictEqual((await handle.describe()).action.args, plan.action.args)) continue;
      await handle.update(({ state }) => ({ ...plan, state }));
    }
  }
}
