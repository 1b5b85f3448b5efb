import { ApplicationFailure, Context } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import type { AgainResult, DeliveryDeps } from '../src/delivery/contract.ts';

/** A third of the heartbeat timeout in the workflows. */
const HEARTBEAT_INTERVAL_MS = 5_000;

/** Sends heartbeats during a slow call, so that Temporal retries the work soon only if the worker has died. */
export async function withHeartbeat<T>(work: () => Promise<T>): Promise<T> {
  const context = Context.current();
  const timer = setInterval(() => context.heartbeat(), HEARTBEAT_INTERVAL_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

/** The limit of attempts of the workflow that calls an activity; workflows of earlier versions omit it. */
export interface AttemptLimit {
  readonly maximumAttempts?: number;
}

/** Returns the milliseconds until a message is attempted again: at least what its provider requested. */
export function retryDelayMs(deps: Pick<DeliveryDeps, 'initialIntervalMs'>, result: AgainResult): number {
  return Math.max(result.afterMs ?? 0, result.postponed ? 0 : policyWait(deps, result));
}

/** Returns the failure of an activity whose messages are attempted again after `delayMs`, or given up if `nonRetryable`. */
export function notAccepted(message: string, nonRetryable: boolean, delayMs: number): ApplicationFailure {
  return ApplicationFailure.create({
    type: 'NotAccepted',
    message,
    category: ApplicationFailureCategory.BENIGN,
    nonRetryable,
    nextRetryDelay: Math.ceil(Math.max(1, delayMs)),
  });
}

/** At most this share is added to a delay, so that messages that were refused together are retried apart. */
const JITTER = 0.1;

/**
 * Returns the delay of the running activity's retry policy with jitter, in milliseconds. If a provider always requested an earlier retry,
 * all attempts would otherwise be used up quickly. Temporal also counts the attempts at which the message was postponed or our
 * account was refused, so the delay is at most the one that follows as many failures as are recorded.
 */
function policyWait(
  { initialIntervalMs }: Pick<DeliveryDeps, 'initialIntervalMs'>,
  { failures = Infinity }: AgainResult,
): number {
  const { attempt, retryPolicy } = Context.current().info;
  // Its intervals are milliseconds here, although the SDK's type allows them in words.
  const policy = retryPolicy as
    { initialInterval?: number; backoffCoefficient?: number; maximumInterval?: number } | undefined;
  const { initialInterval = 0, backoffCoefficient = 1, maximumInterval = Infinity } = policy ?? {};
  const delay = Math.min(
    initialInterval * backoffCoefficient ** (attempt - 1),
    initialIntervalMs * backoffCoefficient ** (Math.max(1, failures) - 1),
    maximumInterval,
  );
  return delay * (1 + JITTER * Math.random());
}
