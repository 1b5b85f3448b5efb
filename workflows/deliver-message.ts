import {
  ActivityFailure,
  CancellationScope,
  condition,
  defineSignal,
  isCancellation,
  patched,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  sleep,
  TemporalFailure,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import type { Delivery, EmailActivities, MessageActivities } from '../activities/index.ts';
import type { DeliveryStatus, Member, MemberResult } from '../src/delivery/contract.ts';
import type { RetryPolicy } from '../src/domain/email/retry.ts';
import { PAUSE_BETWEEN_ROUNDS, ROUND_PAUSE_MS } from './rounds.ts';
import { PROVIDER } from './search-attributes.ts';

/** When a message is due: a time of a certain `schedule_version`, or immediately. */
export interface Schedule {
  readonly version: number;
  /** UTC with milliseconds, or null for immediately. */
  readonly dueAt: string | null;
}

/** One message, by its id, which is the workflow's id too. Without a schedule it is due immediately. */
export interface DeliverMessage extends Partial<Schedule> {
  readonly id: string;
  readonly retry: RetryPolicy;
  /**
   * The first attempt is a local activity, since the workflow's task queue is that of its activities. Workflows of earlier
   * versions have a task queue of their own.
   */
  readonly firstAttempt?: 'local';
}

/** The message was given another time. A version that is not newer, and a payload that is no schedule, are ignored. */
export const reschedule = defineSignal<[Schedule]>('reschedule');
/** The message was canceled. */
export const cancel = defineSignal('cancel');

/** Patch id: a schedule that is ahead of Postgres gives way to Postgres's. */
const POSTGRES_DECIDES = 'postgres-decides';
/** Patch id: a schedule that is newer than Postgres's answer does not wait until that answer's time. */
const NEWER_SIGNAL_DECIDES = 'newer-signal-decides';

type Activities = EmailActivities & MessageActivities;

/** The longest attempt: an SMTP server may take 10 minutes to reply, and recording the result as long. */
const ATTEMPT_TIMEOUT = '25 minutes';

/** The suffix of the names of a channel's activities. */
type Suffix = 'Email' | 'Chat' | 'Sms';

export const deliverEmail = (message: DeliverMessage) => deliverMessage('email', 'Email', message);
export const deliverChat = (message: DeliverMessage) => deliverMessage('chat', 'Chat', message);
export const deliverSms = (message: DeliverMessage) => deliverMessage('chat', 'Sms', message);

/**
 * Delivers one message from its acceptance to its end at the provider. Postgres decides what happens; this waits: until
 * the message is due, and between attempts. Reschedule, cancel and a cancellation from Temporal's own tools wake it.
 * @returns the status in which the message was left
 */
async function deliverMessage(
  taskQueue: string,
  suffix: Suffix,
  { id, retry, firstAttempt, version: firstVersion = 0, dueAt: firstDueAt = null }: DeliverMessage,
): Promise<DeliveryStatus> {
  // Bookkeeping in Postgres is retried without a limit until the database is reachable.
  const bookkeeping = proxyActivities<Activities>({
    taskQueue,
    startToCloseTimeout: '1 minute',
    retry: { initialInterval: '1 second', maximumInterval: '30 seconds' },
  });
  let schedule: Schedule = { version: firstVersion, dueAt: firstDueAt };
  let canceled = false;
  setHandler(reschedule, (next: unknown) => {
    if (isSchedule(next) && next.version > schedule.version) schedule = next;
  });
  setHandler(cancel, () => {
    canceled = true;
  });

  let minWaitMs = 0;
  let isRepeated = false;
  for (;;) {
    try {
      await waitUntilDue(minWaitMs);
    } catch (error) {
      if (!isCancellation(error)) throw error;
      canceled = true;
    }
    if (canceled) {
      const status = await CancellationScope.nonCancellable(() => bookkeeping[`cancel${suffix}`]({ id }));
      if (status !== 'queued') return status;
    }
    const { version } = schedule;
    const delivery = await CancellationScope.nonCancellable(() => attempt({ id, version }));
    if (delivery.state === 'ended') {
      if (delivery.provider) upsertSearchAttributes([{ key: PROVIDER, value: delivery.provider }]);
      setCurrentDetails(`Ended: ${delivery.status}`);
      return delivery.status;
    }
    if (delivery.version >= schedule.version) schedule = delivery;
    // Only a signal that arrived during the attempt can be newer than Postgres's answer.
    else if (schedule.version === version) {
      if (patched(POSTGRES_DECIDES)) schedule = delivery;
    } else if (patched(NEWER_SIGNAL_DECIDES)) {
      minWaitMs = 0;
      isRepeated = false;
      continue;
    }
    const isDue = delivery.inMs <= 0;
    minWaitMs = isDue && isRepeated && patched(PAUSE_BETWEEN_ROUNDS) ? ROUND_PAUSE_MS : delivery.inMs;
    isRepeated = isDue;
  }

  /** Waits until the message is due at its latest time; at first at least `minMs`, when our clock runs ahead of Postgres's. */
  async function waitUntilDue(minMs: number): Promise<void> {
    for (let leastMs = minMs; ; leastMs = 0) {
      const { version, dueAt } = schedule;
      const waitMs = dueAt === null ? 0 : Math.max(Date.parse(dueAt) - Date.now(), leastMs);
      if (canceled || waitMs <= 0) return;
      setCurrentDetails(`Waiting until ${dueAt} (schedule version ${version})`);
      const woken = await condition(() => canceled || schedule.version !== version, waitMs, {
        summary: `until ${dueAt}`,
      });
      if (!woken) return;
    }
  }

  /** Attempts the delivery, first locally, and after that under the retry policy. */
  async function attempt(member: Member): Promise<Delivery> {
    setCurrentDetails('Sending');
    if (firstAttempt !== 'local') return deliver(member, retry);
    const result = await attemptLocally(member);
    if (result.state !== 'again') return result;
    // The jitter is that of `policyWait`.
    const leastMs = result.postponed ? 1 : retry.initialInterval * (1 + Math.random() / 10);
    await sleep(Math.ceil(Math.max(result.afterMs ?? 0, leastMs)), {
      summary: 'until the second attempt',
    });
    return deliver(member, afterFirst(retry));
  }

  /** A local activity has no events of its own in the history, which halves what a workflow costs Temporal's server. */
  async function attemptLocally(member: Member): Promise<MemberResult> {
    const activities = proxyLocalActivities<Activities>({
      startToCloseTimeout: ATTEMPT_TIMEOUT,
      retry: { maximumAttempts: 1 },
    });
    try {
      return await activities[`attempt${suffix}`]({ ...member, maximumAttempts: retry.maximumAttempts });
    } catch (error) {
      // A local activity fails with its cause, without an ActivityFailure around it.
      if (!(error instanceof TemporalFailure)) throw error;
      return { id, state: 'again', reason: error.message };
    }
  }

  /**
   * Delivers under a retry policy. The policy counts every failure of the activity, also those that never reached a provider. Whether
   * the message is given up therefore depends on the recorded attempts; while some are left, a new round starts.
   */
  async function deliver(member: Member, firstRound: RetryPolicy): Promise<Delivery> {
    const { maximumAttempts } = retry;
    // With a single attempt, Temporal would not wait for the delay that a postponed message requests.
    const nextRound = { ...retry, maximumAttempts: Math.max(2, maximumAttempts) };
    for (let policy = firstRound; ; policy = nextRound) {
      const activities = proxyActivities<Activities>({
        taskQueue,
        startToCloseTimeout: ATTEMPT_TIMEOUT,
        // Finds dead workers.
        heartbeatTimeout: '15 seconds',
        summary: `hand over to a provider, at most ${policy.maximumAttempts} attempts`,
        retry: { ...policy, backoffCoefficient: 2 },
      });
      try {
        if (policy.maximumAttempts > 0) return await activities[`deliver${suffix}`]({ ...member, maximumAttempts });
      } catch (error) {
        if (!(error instanceof ActivityFailure)) throw error;
      }
      const status = await bookkeeping[`giveUp${suffix}`]({ id, maximumAttempts });
      // A due message is still scheduled while its claim is postponed, for example by a suspension.
      if (status !== 'queued' && status !== 'scheduled') return { id, state: 'ended', status };
    }
  }
}

/** What is left of a retry policy after the first attempt and the wait that follows it. */
function afterFirst({ maximumAttempts, initialInterval, maximumInterval }: RetryPolicy): RetryPolicy {
  return {
    maximumAttempts: maximumAttempts - 1,
    initialInterval: Math.min(2 * initialInterval, maximumInterval),
    maximumInterval,
  };
}

/** Signals can be sent by hand, with any payload: a handler that threw would fail the workflow task again and again. */
function isSchedule(payload: unknown): payload is Schedule {
  if (typeof payload !== 'object' || payload === null) return false;
  const { version, dueAt } = payload as Partial<Record<keyof Schedule, unknown>>;
  const isInstant = typeof dueAt === 'string' && !Number.isNaN(Date.parse(dueAt));
  return Number.isSafeInteger(version) && (dueAt === null || isInstant);
}
