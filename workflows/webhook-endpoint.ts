import { condition, continueAsNew, defineSignal, patched, proxyActivities, setHandler } from '@temporalio/workflow';

/** A customer's endpoint, by its id, which is the workflow's id too. */
export interface WebhookEndpoint {
  readonly id: string;
}

/** The result of the activity of earlier versions: `asleep` until the next delivery is due, if there is one. */
type DrainResult =
  | { readonly state: 'again' }
  | { readonly state: 'asleep'; readonly inMs: number | null }
  | { readonly state: 'closed' };

export const wake = defineSignal('wake');

const { drainEndpoint } = proxyActivities<{ drainEndpoint: (input: WebhookEndpoint) => Promise<DrainResult> }>({
  taskQueue: 'webhooks',
  startToCloseTimeout: '3 minutes',
  heartbeatTimeout: '15 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '30 seconds' },
});

const MAX_ROUNDS = 200;
/** Patch id: workers poll the table of deliveries. */
const WITHOUT_WORKFLOW = 'webhooks-without-workflow';

/**
 * Posted the deliveries of one endpoint in earlier versions. One that is still open ends when it is woken, which upkeep does
 * (`endEarlierWorkflows`), also if the activity that it waits for has no worker any longer. The rest is for replays. Remove it,
 * with that task and the histories, two versions after the one that polls.
 */
export async function webhookEndpoint({ id }: WebhookEndpoint): Promise<void> {
  let woken = false;
  setHandler(wake, () => {
    woken = true;
  });
  for (let round = 0; round < MAX_ROUNDS; round++) {
    if (patched(WITHOUT_WORKFLOW)) return;
    woken = false;
    const draining = drainEndpoint({ id });
    await Promise.race([draining, condition(isWoken)]);
    if (isWoken() && patched(WITHOUT_WORKFLOW)) return;
    const drained = await draining;
    if (drained.state === 'closed' && !isWoken()) return;
    if (drained.state === 'asleep') await sleep(drained.inMs);
  }
  await continueAsNew<typeof webhookEndpoint>({ id });

  /** The compiler does not see that signals come while it waits. */
  function isWoken(): boolean {
    return woken;
  }

  async function sleep(inMs: number | null): Promise<void> {
    if (inMs === null) await condition(isWoken);
    else await condition(isWoken, Math.ceil(inMs), { summary: 'until the next delivery is due' });
  }
}
