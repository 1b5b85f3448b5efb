import { setTimeout as sleep } from 'node:timers/promises';
import { isUnreachable } from '../src/store/pool.ts';

/** Milliseconds for which a result is held in memory while the database is away; the activity's time-out leaves room. */
const PATIENCE = 75_000;

/**
 * Runs a write until the database takes it. What a provider answered is known only here until it is written down, and
 * forgetting a yes would send twice: the one place in an activity that waits and tries again by itself.
 */
export async function persist(write: () => Promise<void>): Promise<void> {
  const deadline = performance.now() + PATIENCE;
  for (let wait = 200; ; wait = Math.min(wait * 2, 5_000)) {
    try {
      await write();
      return;
    } catch (error) {
      if (!isUnreachable(error) || performance.now() > deadline) throw error;
    }
    await sleep(wait);
  }
}
