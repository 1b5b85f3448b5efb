import type { Logger } from 'pino';
import { idTime } from '../domain/ids.ts';
import { DELIVERY_DAYS } from '../domain/webhooks.ts';
import { announceBatches } from '../projection/batches.ts';
import { findUnannounced } from '../store/emails/batches.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { deleteOldDeliveries } from '../store/webhooks/deliveries.ts';
import { wakeOverdue } from '../store/webhooks/idle.ts';
import { toStep, type UpkeepStep } from './task.ts';

/** Batches or endpoints per step. */
const ITEMS_PER_STEP = 500;
/** Limits a statement to about a second, and a run of 1,000 steps to 5 million deliveries. */
const DELIVERIES_PER_STEP = 5_000;
const DAY_MS = 86_400_000;

/** Maintenance tasks for webhooks: recovery of lost notifications, and deletion of old deliveries. */
export function makeWebhookUpkeep({ pool, log }: { readonly pool: Pool; readonly log: Logger }) {
  return {
    /** Announces completed batches if a process ended before it could. */
    async announceBatches(from: string | null): Promise<UpkeepStep> {
      const ids = await findUnannounced(pool, from, ITEMS_PER_STEP);
      const done = await announceBatches(pool, ids);
      return { done, next: ids.length === ITEMS_PER_STEP ? (ids.at(-1) ?? null) : null };
    },

    /** Wakes endpoints with a delivery that has been due for a minute. */
    async wakeEndpoints(from: string | null): Promise<UpkeepStep> {
      const { woken, last } = await wakeOverdue(pool, from, ITEMS_PER_STEP);
      if (woken > 0) log.info({ endpoints: woken }, 'woke endpoints with overdue deliveries');
      return { done: woken, next: last };
    },

    /** Deletes events, deliveries and their attempts after 30 days. */
    async deleteOldDeliveries(): Promise<UpkeepStep> {
      const before = idTime(Date.now() - DELIVERY_DAYS * DAY_MS);
      const done = await deleteOldDeliveries(pool, before, DELIVERIES_PER_STEP);
      return toStep(done, DELIVERIES_PER_STEP);
    },
  };
}
