import { condition, continueAsNew, defineSignal, patched, proxyActivities, setHandler } from '@temporalio/workflow';
import { PAUSE_BETWEEN_ROUNDS, ROUND_PAUSE_MS } from './rounds.ts';

/** A registered domain, by its id, which is the workflow's id too. */
interface WatchDomain {
  readonly id: string;
}

/** The result of the activity of earlier versions: `asleep` until the next check. */
type WatchResult = { readonly state: 'asleep'; readonly inMs: number } | { readonly state: 'closed' };

export const lookAgain = defineSignal('lookAgain');

const { watchDomain: checkDomain } = proxyActivities<{ watchDomain: (input: WatchDomain) => Promise<WatchResult> }>({
  taskQueue: 'domains',
  startToCloseTimeout: '2 minutes',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
});

const MAX_ROUNDS = 200;
/** Patch id: workers poll the table of domains. */
const WITHOUT_WORKFLOW = 'domains-without-workflow';

/**
 * Waited for the checks of one domain in earlier versions. An open one ends at its next check, or when upkeep
 * signals it (`endEarlierWorkflows`), also if the activity that it waits for has no worker any longer. The rest is for replays.
 * Remove it, with that task and the histories, two versions after the one that polls.
 */
export async function watchDomain({ id }: WatchDomain): Promise<void> {
  let signaled = false;
  setHandler(lookAgain, () => {
    signaled = true;
  });
  for (let round = 0; round < MAX_ROUNDS; round++) {
    if (patched(WITHOUT_WORKFLOW)) return;
    signaled = false;
    const checking = checkDomain({ id });
    await Promise.race([checking, condition(isSignaled)]);
    if (isSignaled() && patched(WITHOUT_WORKFLOW)) return;
    const result = await checking;
    if (result.state === 'closed') {
      if (isSignaled()) continue;
      return;
    }
    const isDue = result.inMs <= 0;
    const waitMs = isDue && patched(PAUSE_BETWEEN_ROUNDS) ? ROUND_PAUSE_MS : Math.max(Math.ceil(result.inMs), 1);
    await condition(isSignaled, waitMs, { summary: 'until it is to be checked again' });
  }
  await continueAsNew<typeof watchDomain>({ id });

  /** The compiler does not see that signals arrive while it waits. */
  function isSignaled(): boolean {
    return signaled;
  }
}
