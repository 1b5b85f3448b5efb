import { Context } from '@temporalio/activity';
import { withJitter } from '../src/domain/email/retry.ts';

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

/**
 * Returns the delay of the running activity's retry policy with jitter, in milliseconds. If a provider always requested an earlier retry,
 * all attempts would otherwise be used up quickly.
 */
export function policyWait(): number {
  const { attempt, retryPolicy } = Context.current().info;
  // Its intervals are milliseconds here, although the SDK's type allows them in words.
  const policy = retryPolicy as
    { initialInterval?: number; backoffCoefficient?: number; maximumInterval?: number } | undefined;
  const { initialInterval = 0, backoffCoefficient = 1, maximumInterval = Infinity } = policy ?? {};
  return withJitter(Math.min(initialInterval * backoffCoefficient ** (attempt - 1), maximumInterval));
}
