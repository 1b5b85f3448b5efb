import { setTimeout as sleep } from 'node:timers/promises';
import { isUnreachable } from '../store/postgres/pool.ts';

/** Milliseconds for which a write is tried again. */
const WRITE_RETRY_DEADLINE_MS = 75_000;

/**
 * Runs a write until the database takes it. A provider's answer is known only here until it is recorded, and to lose a
 * "taken" would send twice: the one place in an activity that waits and tries again by itself.
 * @param onFailure called after each attempt that will be followed by another
 */
export async function persist(
  write: () => Promise<void>,
  deadlineMs = WRITE_RETRY_DEADLINE_MS,
  onFailure: (error: unknown) => void = () => undefined,
): Promise<void> {
  const deadline = performance.now() + deadlineMs;
  for (let wait = 200; ; wait = Math.min(wait * 2, 5_000)) {
    try {
      await write();
      return;
    } catch (error) {
      if (!isUnreachable(error) || performance.now() > deadline) throw error;
      onFailure(error);
    }
    await sleep(wait);
  }
}
