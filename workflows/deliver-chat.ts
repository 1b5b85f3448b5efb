import {
  ActivityFailure,
  CancellationScope,
  proxyActivities,
  setCurrentDetails,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { ChatActivities, ChatDelivery } from '../activities/index.ts';
import type { ChatStatus } from '../src/domain/chat/chat.ts';
import type { RetryPolicy } from '../src/domain/email/retry.ts';
import { PROVIDER } from './search-attributes.ts';

/** One chat-app message, by its id, which is the workflow's id too. */
export interface DeliverChat {
  readonly id: string;
  readonly retry: RetryPolicy;
}

const FLEET = 'chat';

/** Bookkeeping in Postgres: repeated until the database is there, for as long as that takes. */
const { giveUpChat } = proxyActivities<ChatActivities>({
  taskQueue: FLEET,
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '1 second', maximumInterval: '30 seconds' },
});

/**
 * Delivers one chat-app message. It is due immediately and cannot be canceled: a cancellation by Temporal's own tools has no
 * effect.
 * @returns the last status of the message
 */
export async function deliverChat(input: DeliverChat): Promise<ChatStatus> {
  const { status, provider } = await CancellationScope.nonCancellable(() => attempt(input));
  if (provider) upsertSearchAttributes([{ key: PROVIDER, value: provider }]);
  setCurrentDetails(`Ended: ${status}`);
  return status;
}

/** Attempts the delivery under the retry policy; giving up is left to the record of attempts, as for email. */
async function attempt({ id, retry }: DeliverChat): Promise<ChatDelivery> {
  setCurrentDetails('Sending');
  const activities = proxyActivities<ChatActivities>({
    taskQueue: FLEET,
    // Recording the result may take 10 minutes; heartbeats find dead workers.
    startToCloseTimeout: '15 minutes',
    heartbeatTimeout: '15 seconds',
    summary: `hand over to a provider, at most ${retry.maximumAttempts} attempts`,
    retry: { ...retry, backoffCoefficient: 2 },
  });
  for (;;) {
    try {
      return await activities.deliverChat({ id });
    } catch (error) {
      if (!(error instanceof ActivityFailure)) throw error;
      const status = await giveUpChat({ id, maximumAttempts: retry.maximumAttempts });
      if (status !== 'queued') return { state: 'ended', status };
    }
  }
}
