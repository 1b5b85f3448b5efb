import { setTimeout as sleep } from 'node:timers/promises';
import { unstalledMs } from './unstalled-time.ts';

/**
 * Polls until the answer is neither undefined nor false. @throws Error that contains `what` after `within` milliseconds in
 * which the machine did not stall: no limit of speed, since the machine may be busy
 */
export async function eventually<T>(
  what: string,
  ask: () => T | undefined | false | Promise<T | undefined | false>,
  within = 120_000,
): Promise<T> {
  const until = unstalledMs() + within;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (unstalledMs() > until) throw new Error(`not within ${within / 1_000} s: ${what}`);
    await sleep(10);
  }
}
