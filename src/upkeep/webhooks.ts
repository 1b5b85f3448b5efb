import type { Logger } from 'pino';
import { idTime } from '../domain/ids.ts';
import { DELIVERY_DAYS } from '../domain/webhooks.ts';
import { announceBatches } from '../projection/batches.ts';
import { findUnannounced } from '../store/emails/batches.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { deleteOldDeliveries } from '../store/webhooks/deliveries.ts';
import { wakeOverdue } from '../store/webhooks/idle.ts';
import type { UpkeepStep } from './task.ts';

/** Batches or endpoints of one step. */
const AT_ONCE = 500;
/** Deliveries of one step: a statement of about a second at most, and 5 million deliveries a run. */
const DELIVERIES_PER_STEP = 5_000;
const DAY = 86_400_000;

/** Chores around customers' endpoints: what was lost on the way is made up for, what is old is forgotten. */
export function makeWebhookChores({ pool, log }: { readonly pool: Pool; readonly log: Logger }) {
  return {
    /** Tells customers of batches that are over, where a process ended before it could. */
    async announceBatches(from: string | null): Promise<UpkeepStep> {
      const ids = await findUnannounced(pool, from, AT_ONCE);
      const done = await announceBatches(pool, ids);
      return { done, next: ids.length === AT_ONCE ? (ids.at(-1) ?? null) : null };
    },

    /** Wakes endpoints that have had something due for a minute. */
    async wakeEndpoints(from: string | null): Promise<UpkeepStep> {
      const { woken, last } = await wakeOverdue(pool, from, AT_ONCE);
      if (woken > 0) log.info({ endpoints: woken }, 'woke endpoints that are behind');
      return { done: woken, next: last };
    },

    /** Forgets events, deliveries and their tries after 30 days. */
    async deleteOldDeliveries(): Promise<UpkeepStep> {
      const before = idTime(Date.now() - DELIVERY_DAYS * DAY);
      const done = await deleteOldDeliveries(pool, before, DELIVERIES_PER_STEP);
      return { done, next: done === DELIVERIES_PER_STEP ? '' : null };
    },
  };
}
