import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { deferOutbox, deleteOutbox, lockOutbox, type OutboxRow } from '../store/outbox.ts';
import { isUnreachable, type Pool, transaction } from '../store/pool.ts';

export interface RelayDeps {
  readonly pool: Pool;
  /** Asks Temporal for what a row says. Rejects with TemporalUnreachable when no row could succeed now. */
  readonly carryOut: (row: OutboxRow) => Promise<void>;
  readonly log: Logger;
}

/** Temporal cannot be reached or is overloaded: nothing is wrong with the rows. */
export class TemporalUnreachable extends Error {}

export interface Relay {
  /** Says that the outbox may have rows. Cheap; many calls make one look. */
  readonly wake: () => void;
  /** Ends the relay after the rows it holds; resolves when it has let go of them. */
  readonly stop: () => Promise<void>;
}

/** Rows taken at a time; they are asked for at once, so this is also the number of Temporal calls under way. */
const TAKE = 100;
/** Milliseconds after which it looks without being woken. */
const SWEEP = 1_000;
const LONGEST_PAUSE = 10_000;

/**
 * Carries outbox rows to Temporal, the oldest first, for as long as it runs. Any number of relays may share an outbox:
 * each holds the rows it works on, and a row leaves only once Temporal has acknowledged it, so one may be carried out
 * twice and none is forgotten. While Postgres or Temporal is away it tries again, ever more slowly.
 */
export function startRelay(deps: RelayDeps): Relay {
  const stopping = new AbortController();
  let woken = false;
  let rouse: (() => void) | undefined;

  const wake = (): void => {
    woken = true;
    rouse?.();
  };

  const pause = async (milliseconds: number): Promise<void> => {
    const waking = new AbortController();
    rouse = () => waking.abort();
    if (!woken) {
      const signal = AbortSignal.any([stopping.signal, waking.signal]);
      await sleep(milliseconds, undefined, { signal }).catch(() => undefined);
    }
    rouse = undefined;
  };

  const run = async (): Promise<void> => {
    let failures = 0;
    while (!stopping.signal.aborted) {
      woken = false;
      try {
        const taken = await carryBatch(deps);
        if (failures > 0) deps.log.info({ failures }, 'the relay works again');
        failures = 0;
        if (taken < TAKE) await pause(SWEEP);
      } catch (error) {
        if (failures++ === 0) deps.log.warn({ reason: reasonOf(error) }, 'the relay cannot work now and tries again');
        const backOff = Math.min(SWEEP * 2 ** (failures - 1), LONGEST_PAUSE);
        await sleep(backOff, undefined, { signal: stopping.signal }).catch(() => undefined);
      }
    }
  };
  const running = run();

  return {
    wake,
    stop: () => {
      stopping.abort();
      return running;
    },
  };
}

/** Takes rows, carries them out at once, and deletes those that went through. @returns how many it took */
async function carryBatch(deps: RelayDeps): Promise<number> {
  return transaction(deps.pool, async (client) => {
    const rows = await lockOutbox(client, TAKE);
    const results = await Promise.allSettled(rows.map((row) => deps.carryOut(row)));
    const done: string[] = [];
    const refused: string[] = [];
    let unreachable: TemporalUnreachable | undefined;
    for (const [index, result] of results.entries()) {
      const row = rows[index] as OutboxRow;
      if (result.status === 'fulfilled') done.push(row.id);
      else if (result.reason instanceof TemporalUnreachable) unreachable = result.reason;
      else {
        refused.push(row.id);
        deps.log.error(
          { message: row.message_id, action: row.action, tries: row.tries, reason: reasonOf(result.reason) },
          'Temporal refused an outbox row',
        );
      }
    }
    await deleteOutbox(client, done);
    await deferOutbox(client, refused);
    return { count: rows.length, unreachable };
  }).then(({ count, unreachable }) => {
    if (unreachable) throw unreachable;
    return count;
  });
}

function reasonOf(error: unknown): string {
  if (isUnreachable(error)) return 'Postgres cannot be reached';
  return error instanceof Error ? error.message : String(error);
}
