import {
  condition,
  continueAsNew,
  defineSignal,
  patched,
  proxyActivities,
  setCurrentDetails,
  setHandler,
} from '@temporalio/workflow';
import type { DomainActivities } from '../activities/index.ts';
import { PAUSE_BETWEEN_ROUNDS, ROUND_PAUSE_MS } from './rounds.ts';

/** A registered domain, by its id, which is the workflow's id too. */
export interface WatchDomain {
  readonly id: string;
}

/** Something was done to the domain: it was verified, deleted, or begins anew. */
export const lookAgain = defineSignal('lookAgain');

/** Postgres knows when it is due and what was found: repeated for as long as it is away. */
const { watchDomain: look } = proxyActivities<DomainActivities>({
  taskQueue: 'domains',
  startToCloseTimeout: '2 minutes',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
});

/** Rounds until continueAsNew, which keeps the history short: half a year of a verified domain. */
const ROUNDS = 200;

/**
 * Checks a domain whenever that is due: with growing intervals until it is verified, then daily. Ends when the domain has
 * failed or was deleted; a request to verify it starts the workflow again.
 */
export async function watchDomain({ id }: WatchDomain): Promise<void> {
  let signaled = false;
  setHandler(lookAgain, () => {
    signaled = true;
  });
  for (let round = 0; round < ROUNDS; round++) {
    signaled = false;
    setCurrentDetails('Checking, if it is due');
    const watched = await look({ id });
    if (watched.state === 'closed') {
      // A signal that arrived meanwhile may concern a domain that was registered again.
      if (isSignaled()) continue;
      return;
    }
    setCurrentDetails('Waiting until it is to be checked again');
    const isDue = watched.inMs <= 0;
    const waitMs = isDue && patched(PAUSE_BETWEEN_ROUNDS) ? ROUND_PAUSE_MS : Math.max(Math.ceil(watched.inMs), 1);
    await condition(isSignaled, waitMs, { summary: 'until it is to be checked again' });
  }
  await continueAsNew<typeof watchDomain>({ id });

  /** The compiler does not see that signals arrive while it waits. */
  function isSignaled(): boolean {
    return signaled;
  }
}
