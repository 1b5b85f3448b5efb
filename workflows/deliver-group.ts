import {
  ActivityFailure,
  type ActivityOptions,
  CancellationScope,
  isCancellation,
  patched,
  proxyActivities,
  setCurrentDetails,
  sleep,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { GroupActivities, GroupDelivery } from '../activities/index.ts';
import type { RetryPolicy } from '../src/domain/email/retry.ts';
import type { MessageChannel } from '../src/domain/messages/message.ts';
import { PAUSE_BETWEEN_ROUNDS, ROUND_PAUSE_MS } from './rounds.ts';
import { PROVIDER } from './search-attributes.ts';

/** Messages of one channel that are due at the same instant, or immediately, and share one workflow. */
export interface DeliverGroup {
  /** The workflow's own id, by which the messages' rows name it. */
  readonly id: string;
  readonly members: readonly { readonly id: string; readonly version: number }[];
  /** UTC with milliseconds, or null for immediately. */
  readonly dueAt: string | null;
  readonly retry: RetryPolicy;
  /** The task queue of its activities; `email-groups` by default, which earlier versions used for all groups. */
  readonly taskQueue?: GroupQueue;
  /** Missing for emails. */
  readonly channel?: MessageChannel;
}

/**
 * Groups have task queues of their own, with few slots each: one for emails of batches and late ones, one for single emails that became
 * due just now; and the same for chat-app messages and SMS.
 */
export type GroupQueue = 'email-groups' | 'email-bursts' | 'chat-groups' | 'chat-bursts';

/** Bookkeeping in Postgres is retried without a limit until the database is reachable. */
const BOOKKEEPING: ActivityOptions = {
  startToCloseTimeout: '1 minute',
  retry: { initialInterval: '1 second', maximumInterval: '30 seconds' },
};

/**
 * Delivers many messages from their acceptance to their end at the provider. A message that is rescheduled, or that must be retried
 * after the others have ended, is detached: another workflow delivers it. Canceled messages are skipped when the group is due.
 * @returns the number of messages by their last status
 */
export async function deliverGroup(group: DeliverGroup): Promise<GroupDelivery['counts']> {
  const { members } = group;
  try {
    await waitUntilDue(group);
  } catch (error) {
    if (!isCancellation(error)) throw error;
    await CancellationScope.nonCancellable(() => activitiesOf(group, BOOKKEEPING).cancelGroup(inputOf(group, members)));
  }
  return CancellationScope.nonCancellable(async () => {
    let delivery = await attempt(group, members);
    const total = { ...delivery.counts };
    for (let early = delivery.early; early; early = delivery.early) {
      const pauseMs = early.inMs <= 0 && patched(PAUSE_BETWEEN_ROUNDS) ? ROUND_PAUSE_MS : early.inMs;
      await sleep(pauseMs, { summary: 'our clock is ahead of the database' });
      delivery = await attempt(group, early.members);
      add(total, delivery.counts);
    }
    if (delivery.providers.length === 1) {
      upsertSearchAttributes([{ key: PROVIDER, value: delivery.providers.join() }]);
    }
    setCurrentDetails(
      `Ended: ${Object.entries(total)
        .map(([status, count]) => `${count} ${status}`)
        .join(', ')}`,
    );
    return total;
  });
}

async function waitUntilDue(group: DeliverGroup): Promise<void> {
  const { members, dueAt } = group;
  const waitMs = dueAt === null ? 0 : Date.parse(dueAt) - Date.now();
  if (waitMs <= 0) return;
  setCurrentDetails(`${members.length} ${nounOf(group)}, waiting until ${dueAt}`);
  await sleep(waitMs, { summary: `until ${dueAt}` });
}

/** Attempts the delivery under the retry policy, as the workflow of a single email does. */
async function attempt(group: DeliverGroup, members: DeliverGroup['members']): Promise<GroupDelivery> {
  const { retry } = group;
  const input = { ...inputOf(group, members), maximumAttempts: retry.maximumAttempts };
  const count = `${members.length} ${nounOf(group)}`;
  setCurrentDetails(`Sending ${count}`);
  // From the second round on at least 2: with a single attempt, Temporal would not wait for the delay that a pause requests.
  for (let { maximumAttempts } = retry; ; maximumAttempts = Math.max(2, retry.maximumAttempts)) {
    const activities = activitiesOf(group, {
      startToCloseTimeout: '1 hour',
      heartbeatTimeout: '15 seconds',
      summary: `hand ${count} over to a provider, at most ${maximumAttempts} attempts`,
      retry: { ...retry, maximumAttempts, backoffCoefficient: 2 },
    });
    try {
      return await activities.deliverGroup(input);
    } catch (error) {
      if (!(error instanceof ActivityFailure)) throw error;
      await activitiesOf(group, BOOKKEEPING).giveUpGroup(input);
    }
  }
}

function inputOf({ id, channel }: DeliverGroup, members: DeliverGroup['members']) {
  return { id, members, ...(channel !== undefined && { channel }) };
}

function nounOf({ channel }: DeliverGroup): string {
  return channel === undefined ? 'emails' : 'messages';
}

function activitiesOf({ taskQueue = 'email-groups' }: DeliverGroup, options: ActivityOptions) {
  return proxyActivities<GroupActivities>({ taskQueue, ...options });
}

function add(total: Record<string, number>, counts: Readonly<Record<string, number>>): void {
  for (const [status, count] of Object.entries(counts)) total[status] = (total[status] ?? 0) + count;
}
