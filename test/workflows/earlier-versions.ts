import { condition, continueAsNew, defineSignal, proxyActivities, setHandler } from '@temporalio/workflow';

type Result = { readonly state: 'again' | 'closed' } | { readonly state: 'asleep'; readonly inMs: number | null };
type Activity = (input: { readonly id: string }) => Promise<Result>;

const { drainEndpoint } = proxyActivities<{ drainEndpoint: Activity }>({
  taskQueue: 'webhooks',
  startToCloseTimeout: '3 minutes',
  heartbeatTimeout: '15 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '30 seconds' },
});

const { watchDomain: look } = proxyActivities<{ watchDomain: Activity }>({
  taskQueue: 'domains',
  startToCloseTimeout: '2 minutes',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
});

/** The workflow of an endpoint as it was before workers polled the table of deliveries. */
export async function webhookEndpoint({ id }: { readonly id: string }): Promise<void> {
  let woken = false;
  const isWoken = () => woken;
  setHandler(defineSignal('wake'), () => {
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

/** The workflow of a domain as it was before workers polled the table of domains. */
export async function watchDomain({ id }: { readonly id: string }): Promise<void> {
  let signaled = false;
  const isSignaled = () => signaled;
  setHandler(defineSignal('lookAgain'), () => {
    signaled = true;
  });
  for (let round = 0; round < 200; round++) {
    signaled = false;
    const watched = await look({ id });
    if (watched.state !== 'asleep') {
      if (isSignaled()) continue;
      return;
    }
    await condition(isSignaled, Math.max(Math.ceil(watched.inMs ?? 0), 1), {
      summary: 'until it is to be checked again',
    });
  }
  await continueAsNew<typeof watchDomain>({ id });
}
