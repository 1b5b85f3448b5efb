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

/** Rounds after which it begins anew, so that its history stays short: half a year of a domain that is verified. */
const ROUNDS = 200;

/**
 * Has a domain checked whenever that is due: ever more seldom until it is verified, every day from then on. Ends when
 * the domain has failed or was deleted; it is started again by a request to verify it.
 */
export async function watchDomain({ id }: WatchDomain): Promise<void> {
  let told = false;
  setHandler(lookAgain, () => {
    told = true;
  });
  for (let round = 0; round < ROUNDS; round++) {
    told = false;
    setCurrentDetails('Checking, if it is due');
    const watched = await look({ id });
    if (watched.state === 'closed') {
      // A signal that came meanwhile may speak of a domain that has begun anew since.
      if (isTold()) continue;
      return;
    }
    setCurrentDetails('Waiting until it is to be checked again');
    const isDue = watched.inMs <= 0;
    const waitMs = isDue && patched(PAUSE_BETWEEN_ROUNDS) ? ROUND_PAUSE_MS : Math.max(Math.ceil(watched.inMs), 1);
    await condition(isTold, waitMs, { summary: 'until it is to be checked again' });
  }
  await continueAsNew<typeof watchDomain>({ id });

  /** The compiler does not see that signals come while it waits. */
  function isTold(): boolean {
    return told;
  }
}
