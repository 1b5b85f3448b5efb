import { setTimeout as sleep } from 'node:timers/promises';
import { isUnreachable } from '../store/postgres/pool.ts';

const WRITE_RETRY_DEADLINE_MS = 75_000;

/**
 * Retries a write while the database is unreachable. A provider's answer is only in memory until it is recorded, and losing an
 * acceptance would send the message twice.
 * @param onFailure called after each attempt that will be followed by another
 */
export async function persist<T>(
  write: () => Promise<T>,
  deadlineMs = WRITE_RETRY_DEADLINE_MS,
  onFailure: (error: unknown) => void = () => undefined,
): Promise<T> {
  const deadline = performance.now() + deadlineMs;
  for (let delayMs = 200; ; delayMs = Math.min(delayMs * 2, 5_000)) {
    try {
      return await write();
    } catch (error) {
      if (!isUnreachable(error) || performance.now() > deadline) throw error;
      onFailure(error);
    }
    await sleep(delayMs);
  }
}
