import type { Logger } from 'pino';
import { createdAt } from '../src/domain/ids.ts';
import { findExpired, findKnownFiles, markDeleted } from '../src/store/emails/attachments.ts';
import { foldBatchMoves } from '../src/store/emails/batches.ts';
import { deleteOldCallbacks } from '../src/store/emails/callbacks.ts';
import { abandonReservations, deleteReservations } from '../src/store/files/reservations.ts';
import type { FileStore } from '../src/store/files/file-store.ts';
import { deleteExpiredKeys } from '../src/store/limits/idempotency.ts';
import { deleteExpiredInvitations } from '../src/store/accounts/invitations.ts';
import type { Pool } from '../src/store/postgres/pool.ts';
import { noteUpkeepSuccess } from '../src/store/upkeep/tasks.ts';
import { expireBodies } from '../src/upkeep/body-retention.ts';
import { deleteExpiredSessions } from '../src/store/accounts/sessions.ts';
import { deleteExpiredAttempts } from '../src/store/accounts/sign-ins.ts';
import type { UpkeepStep } from '../src/upkeep/task.ts';
import { type ChatChoreDeps, makeChatChores } from '../src/upkeep/chat.ts';
import { type DomainChoreDeps, makeDomainChores } from '../src/upkeep/domains.ts';
import { makeProviderListActivities, type ProviderListDeps } from '../src/upkeep/provider-lists.ts';
import { makeReconcileActivities, type ReconcileDeps } from '../src/upkeep/reconcile.ts';
import { makeRescueActivities, type RescueDeps } from '../src/upkeep/rescue.ts';
import { makeWebhookChores } from '../src/upkeep/webhooks.ts';

/** What the upkeep activities work with. */
export interface UpkeepDeps extends ReconcileDeps, RescueDeps, ChatChoreDeps, ProviderListDeps, DomainChoreDeps {
  readonly pool: Pool;
  readonly files: FileStore;
  /** The setting `BODY_RETENTION_DAYS`. */
  readonly bodyRetentionDays: number;
  readonly log: Logger;
}

/** Files of one step. */
const AT_ONCE = 500;
/** Rows that one step deletes: a statement of about a second at most, and 5 million rows a run. */
const DELETED_ROWS_PER_STEP = 5_000;
/** Batches of one step; each is a few thousand rows. */
const BATCHES_AT_ONCE = 50;
/** Age of a file from which on it is reported: expired files take an hour to be removed, and retries of that longer. */
const UNKNOWN_AFTER_MS = 24 * 3_600_000;
/** Pages of the store that one step looks at. */
const PAGES = 50;

/** The activities of the fleet `upkeep`: each does one bounded step of a chore and may be repeated. */
export function makeUpkeepActivities(deps: UpkeepDeps) {
  return notingSuccesses(deps.pool, makeTasks(deps));
}
export type UpkeepActivities = ReturnType<typeof makeUpkeepActivities>;

/** Notes of each task when its last step is done: `sendwright_upkeep_last_success_seconds` tells when none was for long. */
function notingSuccesses<T extends Record<string, (from: string | null) => Promise<UpkeepStep>>>(
  pool: Pool,
  tasks: T,
): T {
  const noting = Object.entries(tasks).map(([name, task]) => {
    const noted = async (from: string | null): Promise<UpkeepStep> => {
      const step = await task(from);
      if (step.next === null) await noteUpkeepSuccess(pool, name);
      return step;
    };
    return [name, noted];
  });
  return Object.fromEntries(noting) as T;
}

function makeTasks(deps: UpkeepDeps) {
  return {
    ...makeReconcileActivities(deps),
    ...makeRescueActivities(deps),
    ...makeChatChores(deps),
    ...makeProviderListActivities(deps),
    ...makeDomainChores(deps),
    ...makeWebhookChores(deps),

    /** Deletes files 30 days after their emails were sent or ended; what is known of them stays. */
    async expireAttachments(): Promise<UpkeepStep> {
      const { expired, more } = await findExpired(deps.pool, AT_ONCE);
      // The other way round, a crash in between would leave files that nobody looks for.
      await deps.files.remove(expired);
      await markDeleted(deps.pool, expired);
      return { done: expired.length, next: more ? '' : null };
    },

    /**
     * Removes files whose request ended before it stored an email. It knows them by their reservations, which only this
     * installation writes: what else is in the store, and what another database refers to, stays.
     */
    async sweepFiles(): Promise<UpkeepStep> {
      const ids = await abandonReservations(deps.pool, AT_ONCE);
      await deps.files.remove(ids);
      await deleteReservations(deps.pool, ids);
      if (ids.length > 0) deps.log.info({ files: ids.length }, 'removed files of requests that stored no email');
      return whole(ids.length, AT_ONCE);
    },

    /**
     * Reports files in the store that this database does not know, and removes none of them: they may belong to another
     * installation, or to emails that a restored database has lost.
     */
    async reportUnknownFiles(from: string | null): Promise<UpkeepStep> {
      const before = Date.now() - UNKNOWN_AFTER_MS;
      let done = 0;
      let next = from;
      for (let page = 0; page < PAGES; page++) {
        const { ids, next: following } = await deps.files.list(next);
        next = following;
        const old = ids.filter((id) => createdAt(id) < before);
        const known = await findKnownFiles(deps.pool, old);
        done += old.length - known.size;
        if (next === null) break;
      }
      if (done > 0)
        deps.log.warn({ fileCount: done }, 'the attachment store holds files that this database does not know');
      return { done, next };
    },

    /** Erases bodies and custom headers of emails after their organization's retention. */
    async expireBodies(from: string | null): Promise<UpkeepStep> {
      return expireBodies(deps.pool, deps.bodyRetentionDays, from, AT_ONCE);
    },

    /** Forgets idempotency keys after 24 hours. */
    async deleteExpiredKeys(): Promise<UpkeepStep> {
      return whole(await deleteExpiredKeys(deps.pool, DELETED_ROWS_PER_STEP), DELETED_ROWS_PER_STEP);
    },

    /** Forgets what providers posted that changed nothing after 30 days. */
    async deleteOldCallbacks(): Promise<UpkeepStep> {
      return whole(await deleteOldCallbacks(deps.pool, DELETED_ROWS_PER_STEP), DELETED_ROWS_PER_STEP);
    },

    /** Deletes expired counts of failed sign-ins, sessions and invitations. */
    async deleteExpiredSignIns(): Promise<UpkeepStep> {
      const counts = [
        await deleteExpiredAttempts(deps.pool, DELETED_ROWS_PER_STEP),
        await deleteExpiredSessions(deps.pool, DELETED_ROWS_PER_STEP),
        await deleteExpiredInvitations(deps.pool, DELETED_ROWS_PER_STEP),
      ];
      const done = counts.reduce((sum, count) => sum + count, 0);
      return { done, next: counts.includes(DELETED_ROWS_PER_STEP) ? '' : null };
    },

    /** Adds up how the emails of batches moved. */
    async foldBatchMoves(): Promise<UpkeepStep> {
      return whole(await foldBatchMoves(deps.pool, BATCHES_AT_ONCE), BATCHES_AT_ONCE);
    },
  };
}

/** A step that did all it may has likely left some. */
function whole(done: number, limit: number): UpkeepStep {
  return { done, next: done === limit ? '' : null };
}
