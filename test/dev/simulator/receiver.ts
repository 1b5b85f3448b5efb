import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../support/eventually.ts';
import { type Recorded as Hit, recordingServer } from '../../providers/servers.ts';

export type { Hit };

/** Answers each callback with the next of these statuses, the last one for ever; 0 breaks the connection. */
export async function receiver(t: TestContext, ...statuses: number[]) {
  let count = 0;
  const { url, requests } = await recordingServer(t, () => {
    return { status: statuses[Math.min(++count, statuses.length) - 1] ?? 200 };
  });
  return { url, hits: requests };
}

/** Waits until so many callbacks have come, and then a moment for one too many. */
export async function awaitCallbacks(hits: readonly Hit[], count: number): Promise<void> {
  await eventually(`${count} callbacks came`, () => hits.length >= count);
  await sleep(100);
}
