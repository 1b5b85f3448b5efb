import { condition, continueAsNew, defineSignal, proxyActivities, setHandler } from '@temporalio/workflow';

type Drained = { readonly state: 'again' | 'closed' } | { readonly state: 'asleep'; readonly inMs: number | null };

const wake = defineSignal('wake');
const { drainEndpoint } = proxyActivities<{ drainEndpoint: (input: { readonly id: string }) => Promise<Drained> }>({
  taskQueue: 'webhooks',
  startToCloseTimeout: '3 minutes',
  heartbeatTimeout: '15 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '30 seconds' },
});

/** The workflow of an endpoint as it was before workers polled the table of deliveries. */
export async function webhookEndpoint({ id }: { readonly id: string }): Promise<void> {
  let woken = false;
  const isWoken = () => woken;
  setHandler(wake, () => {
    woken = true;
  });
  for (let round = 0; round < 200; round++) {
    woken = false;
    const drained = await drainEndpoint({ id });
    if (drained.state === 'closed' && !isWoken()) return;
    if (drained.state !== 'asleep') continue;
    if (drained.inMs === null) await condition(isWoken);
    else await condition(isWoken, Math.ceil(drained.inMs), { summary: 'until the next delivery is due' });
  }
  await continueAsNew<typeof webhookEndpoint>({ id });
}
