import type { Logger } from 'pino';
import { idTime } from '../lib/ids.ts';
import { DELIVERY_DAYS } from '../domain/webhooks.ts';
import { announceBatches } from '../projection/batches.ts';
import { findUnannounced } from '../store/emails/batches.ts';
import { readClock } from '../store/postgres/clock.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { deleteOldDeliveries } from '../store/webhooks/deliveries.ts';
import { deleteEarlierRows } from '../store/outbox/outbox.ts';
import { toStep, type UpkeepStep } from './task.ts';
import type { Workflows } from './workflow-state.ts';

/** Batches or workflows per step. */
const ITEMS_PER_STEP = 500;
/** Limits a statement to about a second, and a run of 1,000 steps to 5 million deliveries. */
const DELIVERIES_PER_STEP = 5_000;
const DAY_MS = 86_400_000;

interface WebhookUpkeepDeps {
  readonly pool: Pool;
  readonly workflows: Pick<Workflows, 'endEarlier'>;
  readonly log: Logger;
}

export function makeWebhookUpkeep({ pool, workflows, log }: WebhookUpkeepDeps) {
  return {
    /** Announces completed batches if a process ended before it could. */
    async announceBatches(from: string | null): Promise<UpkeepStep> {
      const ids = await findUnannounced(pool, from, ITEMS_PER_STEP);
      const done = await announceBatches(pool, ids);
      return { done, next: ids.length === ITEMS_PER_STEP ? (ids.at(-1) ?? null) : null };
    },

    /** Ends workflows of endpoints and domains that an earlier version left open, and deletes its outbox rows. */
    async endEarlierWorkflows(): Promise<UpkeepStep> {
      await deleteEarlierRows(pool);
      const done = await workflows.endEarlier(ITEMS_PER_STEP);
      if (done > 0) log.info({ workflows: done }, 'ended workflows of an earlier version');
      return { done, next: null };
    },

    /** Deletes events, deliveries and their attempts after 30 days. */
    async deleteOldDeliveries(): Promise<UpkeepStep> {
      const before = idTime((await readClock(pool)).getTime() - DELIVERY_DAYS * DAY_MS);
      const done = await deleteOldDeliveries(pool, before, DELIVERIES_PER_STEP);
      return toStep(done, DELIVERIES_PER_STEP);
    },
  };
}
