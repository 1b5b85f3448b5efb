import { setTimeout as sleep } from 'node:timers/promises';
import type { DevFile } from '../src/main/dev-file.ts';
import { findBatch } from '../src/store/emails/batches.ts';
import type { Pool } from '../src/store/postgres/pool.ts';

const STUCK_AFTER_MS = 300_000;
/** The provider is considered to have no more reports after this time without one. */
const QUIET_MS = 2_000;

/** Counts pending emails, and emails without a report. */
export async function countPending(pool: Pool): Promise<{ pending: number; unreported: number }> {
  const { rows } = await pool.query<{ pending: number; unreported: number }>(
    `SELECT count(*) FILTER (WHERE status <> 'sent')::int AS pending,
            count(*) FILTER (WHERE status = 'sent')::int AS unreported
     FROM emails WHERE status IN ('queued', 'scheduled', 'sent')`,
  );
  return rows[0] ?? { pending: 0, unreported: 0 };
}

/** Waits until every email has been handed over. */
export async function untilSent(pool: Pool): Promise<void> {
  await until('every email is sent', async () => {
    const { rows } = await pool.query<{ open: boolean }>(
      `SELECT EXISTS (SELECT FROM emails WHERE status IN ('queued', 'scheduled')) AS open`,
    );
    return rows[0]?.open === false;
  });
}

/** Waits until every chat-app message and SMS has been handed over. */
export async function untilMessagesSent(pool: Pool): Promise<void> {
  await until('every message is sent', async () => {
    const { rows } = await pool.query<{ open: boolean }>(
      `SELECT EXISTS (SELECT FROM chat_messages WHERE status IN ('queued', 'scheduled')) AS open`,
    );
    return rows[0]?.open === false;
  });
}

/** Waits until every email of a batch has been handed over, by its counts: reading its emails would slow their delivery. */
export async function untilBatchSent(pool: Pool, stack: Pick<DevFile, 'organization_id'>, id: string): Promise<void> {
  await until('the batch is sent', async () => {
    const batch = await findBatch(pool, stack.organization_id, id);
    return batch?.completed_at != null;
  });
}

/** Waits until the relay has nothing left to dispatch to Temporal. */
export async function untilStarted(pool: Pool): Promise<void> {
  await until('the outbox is empty', async () => {
    const { rows } = await pool.query<{ open: boolean }>('SELECT EXISTS (SELECT FROM outbox) AS open');
    return rows[0]?.open === false;
  });
}

/** Waits until every email has been handed over and the provider has nothing to report about them. */
export async function untilQuiet(pool: Pool): Promise<void> {
  await untilSent(pool);
  let before = -1;
  await until('the provider is quiet', async () => {
    const { unreported } = await countPending(pool);
    if (unreported === before) return true;
    before = unreported;
    await sleep(QUIET_MS);
    return false;
  });
}

/** Polls every 50 ms. @throws Error on a timeout */
async function until(what: string, ask: () => Promise<boolean>): Promise<void> {
  const from = performance.now();
  while (!(await ask())) {
    if (performance.now() - from > STUCK_AFTER_MS) throw new Error(`not within ${STUCK_AFTER_MS / 1_000} s: ${what}`);
    await sleep(50);
  }
}
