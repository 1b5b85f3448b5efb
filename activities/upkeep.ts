import type { Logger } from 'pino';
import { createdAt } from '../src/lib/ids.ts';
import { findExpired, findKnownFiles, markDeleted } from '../src/store/emails/attachments.ts';
import { aggregateBatchMoves } from '../src/store/emails/batches.ts';
import { abandonReservations, deleteReservations } from '../src/store/files/reservations.ts';
import { type FileStore, FilesNotRemoved } from '../src/store/files/file-store.ts';
import { readClock } from '../src/store/postgres/clock.ts';
import type { Pool } from '../src/store/postgres/pool.ts';
import { deleteOldStatistics } from '../src/store/statistics/totals.ts';
import { deleteExcessCallbacks } from '../src/store/emails/callbacks.ts';
import { deleteExpired, type ExpiringTable } from '../src/store/upkeep/expired.ts';
import { recordUpkeepSuccess } from '../src/store/upkeep/tasks.ts';
import { expireBodies } from '../src/upkeep/body-retention.ts';
import { toStep, type UpkeepStep } from '../src/upkeep/task.ts';
import { type MessageUpkeepDeps, makeMessageUpkeep } from '../src/upkeep/messages.ts';
import { type DomainUpkeepDeps, makeDomainUpkeep } from '../src/upkeep/domains.ts';
import { makePartitionUpkeep, type PartitionDeps } from '../src/upkeep/partitions.ts';
import { makeProviderListUpkeep, type ProviderListDeps } from '../src/upkeep/provider-lists.ts';
import { makeReconcileUpkeep, type ReconcileDeps } from '../src/upkeep/reconcile.ts';
import { makeRescueUpkeep, type RescueDeps } from '../src/upkeep/rescue.ts';
import { backfillStatistics } from '../src/upkeep/statistics.ts';
import { makeWebhookUpkeep } from '../src/upkeep/webhooks.ts';

/** The dependencies of the upkeep activities. */
interface UpkeepDeps
  extends ReconcileDeps, RescueDeps, MessageUpkeepDeps, ProviderListDeps, DomainUpkeepDeps, PartitionDeps {
  readonly pool: Pool;
  readonly files: FileStore;
  /** The setting `BODY_RETENTION_DAYS`. */
  readonly bodyRetentionDays: number;
  readonly log: Logger;
}

/** Files or emails per step. */
const ITEMS_PER_STEP = 500;
/** Limits a statement to about a second, and a run of 1,000 steps to 5 million rows. */
const DELETED_ROWS_PER_STEP = 5_000;
/** Each batch has a few thousand rows. */
const BATCHES_PER_STEP = 50;
/** Younger files are not reported: files of requests that stored no email are removed after an hour, or later if that fails. */
const UNKNOWN_AFTER_MS = 24 * 3_600_000;
/** Pages of the file store that one step lists. */
const PAGES_PER_STEP = 50;

/** The activities of the fleet `upkeep`. Each performs one bounded step of a maintenance task and is idempotent. */
export function makeUpkeepActivities(deps: UpkeepDeps): UpkeepActivities {
  return { ...EARLIER_TASKS, ...recordSuccesses(deps.pool, makeTasks(deps)) };
}
export type UpkeepActivities = ReturnType<typeof makeTasks>;

/**
 * Tasks that only version 0.1.0 has. A run that it began still requests them: if they were unknown, their retries would take
 * minutes, during which the schedule starts no other run.
 */
const EARLIER_TASKS = Object.fromEntries(
  ['wakeEndpoints', 'wakeDomains'].map((name) => [name, async (): Promise<UpkeepStep> => ({ done: 0, next: null })]),
);

/** Records when the last step of a task has ended, for the metric `sendwright_upkeep_last_success_seconds`. */
function recordSuccesses<T extends Record<string, (from: string | null) => Promise<UpkeepStep>>>(
  pool: Pool,
  tasks: T,
): T {
  const wrapped = Object.entries(tasks).map(([name, task]) => {
    const run = async (from: string | null): Promise<UpkeepStep> => {
      const step = await task(from);
      if (step.next === null) await recordUpkeepSuccess(pool, name);
      return step;
    };
    return [name, run];
  });
  return Object.fromEntries(wrapped) as T;
}

/**
 * Removes files from the store, and then records the removed ones. A file that cannot be removed does not block others: later steps
 * find it after all other files. Only the last step fails because of it, and a step that removes no file at all, since the steps
 * would not end otherwise; the retry of such a step finds the next files.
 * @param hasMore true if another step may find other files
 */
async function removeFiles(
  store: FileStore,
  ids: readonly string[],
  hasMore: boolean,
  record: (removed: readonly string[]) => Promise<void>,
): Promise<UpkeepStep> {
  const failure = await store.remove(ids).then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof FilesNotRemoved) return error;
      throw error;
    },
  );
  const removed = failure ? ids.filter((id) => !failure.ids.includes(id)) : ids;
  // In the reverse order, a crash in between would leave files that are never deleted.
  await record(removed);
  if (failure && (!hasMore || removed.length === 0)) throw failure;
  return { done: removed.length, next: hasMore ? '' : null };
}

function makeTasks(deps: UpkeepDeps) {
  const deleteFrom = async (...tables: readonly ExpiringTable[]): Promise<UpkeepStep> => {
    const counts: number[] = [];
    for (const table of tables) counts.push(await deleteExpired(deps.pool, table, DELETED_ROWS_PER_STEP));
    const done = counts.reduce((sum, count) => sum + count, 0);
    return { done, next: counts.includes(DELETED_ROWS_PER_STEP) ? '' : null };
  };
  return {
    ...makeReconcileUpkeep(deps),
    ...makeRescueUpkeep(deps),
    ...makeMessageUpkeep(deps),
    ...makeProviderListUpkeep(deps),
    ...makeDomainUpkeep(deps),
    ...makeWebhookUpkeep(deps),
    ...makePartitionUpkeep(deps),

    /** Deletes files 30 days after their emails were sent or ended, and keeps their metadata. */
    async expireAttachments(): Promise<UpkeepStep> {
      const { expired, more } = await findExpired(deps.pool, ITEMS_PER_STEP);
      return removeFiles(deps.files, expired, more, (removed) => markDeleted(deps.pool, removed));
    },

    /**
     * Removes files whose request ended before it stored an email. They are found by their reservations, so that other files in
     * the store, for example of another installation, are not removed.
     */
    async sweepFiles(): Promise<UpkeepStep> {
      const ids = await abandonReservations(deps.pool, ITEMS_PER_STEP);
      return removeFiles(deps.files, ids, ids.length === ITEMS_PER_STEP, async (removed) => {
        await deleteReservations(deps.pool, removed);
        if (removed.length > 0)
          deps.log.info({ files: removed.length }, 'removed files of requests that stored no email');
      });
    },

    /**
     * Reports files of the store that the database does not know. It does not remove them: they may belong to another installation, or
     * to emails that a restored database has lost.
     */
    async reportUnknownFiles(from: string | null): Promise<UpkeepStep> {
      const before = (await readClock(deps.pool)).getTime() - UNKNOWN_AFTER_MS;
      let done = 0;
      let next = from;
      for (let page = 0; page < PAGES_PER_STEP; page++) {
        const { ids, next: following } = await deps.files.list(next);
        next = following;
        const old = ids.filter((id) => createdAt(id) < before);
        const knownFiles = await findKnownFiles(deps.pool, old);
        done += old.length - knownFiles.size;
        if (next === null) break;
      }
      if (done > 0)
        deps.log.warn({ fileCount: done }, 'the attachment store contains files that are missing in the database');
      return { done, next };
    },

    /** Erases bodies and custom headers of emails after their organization's retention. */
    async expireBodies(from: string | null): Promise<UpkeepStep> {
      return expireBodies(deps.pool, deps.bodyRetentionDays, from, ITEMS_PER_STEP);
    },

    /** Deletes idempotency keys after 24 hours. */
    deleteExpiredKeys: () => deleteFrom('idempotency_keys'),

    /**
     * Deletes callbacks of providers that changed nothing, and the records of received WhatsApp messages and SMS, after 30 days. If
     * there are too many callbacks, the oldest are deleted before.
     */
    async deleteOldCallbacks(): Promise<UpkeepStep> {
      const expired = await deleteFrom('provider_callbacks', 'chat_inbound', 'sms_received');
      const excess = await deleteExcessCallbacks(deps.pool, DELETED_ROWS_PER_STEP);
      return { done: expired.done + excess, next: excess === DELETED_ROWS_PER_STEP ? '' : expired.next };
    },

    /** Deletes expired counts of failed sign-ins, sessions, invitations, password resets and links of emails about accounts. */
    deleteExpiredSignIns: () =>
      deleteFrom('sign_in_attempts', 'sign_in_failures', 'sessions', 'invitations', 'password_resets', 'account_links'),

    /** Deletes statistics by hour after 100 days, by day after 400. */
    async deleteOldStatistics(): Promise<UpkeepStep> {
      const deleted = await deleteOldStatistics(deps.pool, DELETED_ROWS_PER_STEP);
      return toStep(deleted, DELETED_ROWS_PER_STEP);
    },

    /** Counts the messages of the previous version in the statistics. */
    async backfillStatistics(): Promise<UpkeepStep> {
      return backfillStatistics(deps.pool, (await readClock(deps.pool)).getTime());
    },

    /** Merges recorded status changes into the counts of batches. */
    async foldBatchMoves(): Promise<UpkeepStep> {
      const done = await aggregateBatchMoves(deps.pool, BATCHES_PER_STEP);
      // Many of the oldest moves may be of one batch, so a step with few batches is not the last one.
      return { done, next: done > 0 ? '' : null };
    },
  };
}
