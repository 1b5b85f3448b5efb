import { setTimeout as sleep } from 'node:timers/promises';
import { unstalledMs } from './unstalled-time.ts';

/**
 * Polls until the answer is neither undefined nor false.
 * @param timeoutMs not counting the time for which the machine stalled. It is no limit of speed, since the machine may be busy
 * @throws Error that contains `what`, at the timeout
 */
export async function eventually<T>(
  what: string,
  ask: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = 120_000,
): Promise<T> {
  const until = unstalledMs() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (unstalledMs() > until) throw new Error(`not within ${timeoutMs / 1_000} s: ${what}`);
    await sleep(10);
  }
}
