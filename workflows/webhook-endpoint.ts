import {
  condition,
  continueAsNew,
  defineSignal,
  proxyActivities,
  setCurrentDetails,
  setHandler,
} from '@temporalio/workflow';
import type { WebhookActivities } from '../activities/index.ts';

/** A customer's endpoint, by its id, which is the workflow's id too. */
export interface WebhookEndpoint {
  readonly id: string;
}

/** There may be something to do: a delivery, or the endpoint was disabled or deleted. */
export const wake = defineSignal('wake');

/** Postgres knows what is due and what was tried: repeated for as long as it is away. */
const { drainEndpoint } = proxyActivities<WebhookActivities>({
  taskQueue: 'webhooks',
  startToCloseTimeout: '3 minutes',
  heartbeatTimeout: '15 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '30 seconds' },
});

/** Rounds after which it begins anew, so that its history stays short. */
const ROUNDS = 200;

/**
 * Posts all deliveries of one endpoint, one after the other: has what is due posted, then waits until the next is due
 * or a signal wakes it. Ends when the endpoint is disabled or deleted; it is started again when it is enabled.
 */
export async function webhookEndpoint({ id }: WebhookEndpoint): Promise<void> {
  let woken = false;
  setHandler(wake, () => {
    woken = true;
  });
  for (let round = 0; round < ROUNDS; round++) {
    woken = false;
    setCurrentDetails('Posting what is due');
    const drained = await drainEndpoint({ id });
    // A wake that came meanwhile may speak of an endpoint that has been enabled since.
    if (drained.state === 'closed' && !isWoken()) return;
    if (drained.state === 'asleep') await sleep(drained.inMs);
  }
  await continueAsNew<typeof webhookEndpoint>({ id });

  /** The compiler does not see that signals come while it waits. */
  function isWoken(): boolean {
    return woken;
  }

  async function sleep(inMs: number | null): Promise<void> {
    setCurrentDetails(inMs === null ? 'Nothing to do' : 'Waiting until the next delivery is due');
    if (inMs === null) await condition(isWoken);
    else await condition(isWoken, Math.ceil(inMs), { summary: 'until the next delivery is due' });
  }
}
