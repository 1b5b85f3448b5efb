import { ANSWER_BYTES, MIN_FAILED_ATTEMPTS, retryDelayAfter } from '../../domain/webhooks.ts';
import type { EndpointConnection } from '../../public-fetch/post.ts';
import type { Health, OpenEndpoint } from '../../store/webhooks/leases.ts';
import type { DueDelivery, NewAttempt } from '../../store/webhooks/attempts.ts';
import { webhookPosted } from '../../telemetry/topics.ts';
import { type WebhookAttempt, attempt, isGone, isSuccess } from '../../webhooks/attempt.ts';
import { payloadOfDelivery } from '../../webhooks/payload.ts';
import type { WebhookDeps } from './contract.ts';

/** Concurrent attempts to one endpoint. */
export const MAX_IN_FLIGHT = 32;
/** After so many consecutive failures, attempts are paced, so that a dead endpoint costs little. */
const FAILURES_BEFORE_PACING = 20;
const PACING_INTERVAL_MS = 50;
const NO_RESULTS = { hasSuccess: false, hasFailure: false, hasRepeatedFailure: false };

/** Posts the deliveries of one endpoint with bounded concurrency. */
export interface DeliveryPool {
  /**
   * Queues deliveries. All attempts that start from now on use this state of the endpoint.
   * @param readAt when the endpoint was read, in milliseconds of the monotonic clock
   */
  readonly enqueue: (endpoint: OpenEndpoint, readAt: number, deliveries: readonly DueDelivery[]) => void;
  /** Removes the queued deliveries. */
  readonly clear: () => void;
  readonly queuedCount: () => number;
  /** True if no attempt is in flight and all finished ones have been taken. */
  readonly isFinished: () => boolean;
  /** All enqueued deliveries except those taken by `takeFinished`. */
  readonly ids: () => string[];
  /** Takes the attempts that have ended. Throws an unexpected error of an attempt. */
  readonly takeFinished: () => NewAttempt[];
  /** Resolves when an attempt has ended, or at this time of the monotonic clock. */
  readonly waitForProgress: (deadline: number) => Promise<void>;
  /** The results of attempts to the latest URL. */
  readonly health: () => Health;
  /** The latest URL, if it has answered 410. The owner may have changed it since. */
  readonly goneUrl: () => string | undefined;
  /** Clears the queue and closes the connections. */
  readonly close: () => void;
}

interface Target {
  readonly endpoint: OpenEndpoint;
  readonly secrets: readonly Buffer[];
  /** Postgres's clock in Unix milliseconds minus our monotonic clock: our wall clock may be wrong, and signatures contain the time. */
  readonly clockOffsetMs: number;
}

/** @param mayContinue returns false when no further attempt may start */
export function makeDeliveryPool(
  { connectToEndpoint, seal, log }: WebhookDeps,
  mayContinue: () => boolean,
): DeliveryPool {
  const inFlight = new Set<string>();
  const queue: DueDelivery[] = [];
  const ended: NewAttempt[] = [];
  let failure: Error | undefined;
  let target: Target | undefined;
  /** By URL, which the owner may change. */
  const connections = new Map<string, EndpointConnection>();
  let notify: (() => void) | undefined;
  let health: Health = { url: undefined, ...NO_RESULTS };
  let goneUrl: string | undefined;
  let consecutiveFailures = 0;
  let nextAt = 0;
  const mayStart = (): boolean => goneUrl === undefined && mayContinue();

  const connectionTo = (url: string): EndpointConnection => {
    const connection = connections.get(url) ?? connectToEndpoint(url, MAX_IN_FLIGHT, ANSWER_BYTES);
    connections.set(url, connection);
    return connection;
  };

  const fill = (): void => {
    while (target && queue.length > 0 && inFlight.size < MAX_IN_FLIGHT && mayStart() && performance.now() >= nextAt) {
      const delivery = queue.shift() as DueDelivery;
      if (consecutiveFailures >= FAILURES_BEFORE_PACING) nextAt = performance.now() + PACING_INTERVAL_MS;
      inFlight.add(delivery.id);
      post(target, delivery)
        .catch((error: unknown) => {
          failure = error as Error;
        })
        .finally(() => {
          inFlight.delete(delivery.id);
          fill();
          notify?.();
        });
    }
  };

  const post = async ({ endpoint, secrets, clockOffsetMs }: Target, delivery: DueDelivery): Promise<void> => {
    const startedAt = performance.now();
    const payload = payloadOfDelivery(delivery);
    const at = startedAt + clockOffsetMs;
    const result = await attempt(connectionTo(endpoint.url), delivery.event_id, at, payload, secrets);
    const isDelivered = isSuccess(result);
    if (endpoint.url === health.url) {
      if (isGone(result)) goneUrl = endpoint.url;
      consecutiveFailures = isDelivered ? 0 : consecutiveFailures + 1;
      health = {
        url: health.url,
        hasSuccess: health.hasSuccess || isDelivered,
        hasFailure: health.hasFailure || !isDelivered,
        hasRepeatedFailure: health.hasRepeatedFailure || (!isDelivered && delivery.tries + 1 >= MIN_FAILED_ATTEMPTS),
      };
    }
    ended.push(toNewAttempt(delivery, payload, result, new Date(at).toISOString(), endpoint.url));
    webhookPosted.publish({ outcome: outcomeOf(result), seconds: result.durationMs / 1_000 });
    log.info(
      {
        delivery: delivery.id,
        event: delivery.event_id,
        org: endpoint.org_id,
        attempt: delivery.tries + 1,
        status: result.statusCode,
        ms: result.durationMs,
        reason: result.error ?? undefined,
      },
      isDelivered ? 'webhook delivered' : 'webhook attempt failed',
    );
  };

  return {
    enqueue(endpoint, readAt, deliveries) {
      const sealed = [endpoint.secret, ...endpoint.previous_secrets];
      const clockOffsetMs = endpoint.read_at_ms - readAt;
      if (endpoint.url !== health.url) {
        health = { url: endpoint.url, ...NO_RESULTS };
        consecutiveFailures = 0;
      }
      target = { endpoint, secrets: sealed.map((secret) => seal.open(secret, endpoint.id)), clockOffsetMs };
      queue.push(...deliveries);
      fill();
    },
    clear: () => {
      queue.length = 0;
    },
    queuedCount: () => queue.length,
    isFinished: () => inFlight.size === 0 && ended.length === 0,
    ids: () => [...inFlight, ...queue.map(({ id }) => id), ...ended.map(({ id }) => id)],
    takeFinished() {
      if (failure) throw failure;
      return ended.splice(0);
    },
    async waitForProgress(deadline) {
      fill();
      const hasCapacity = queue.length > 0 && inFlight.size < MAX_IN_FLIGHT && mayStart();
      const withinMs = Math.min(deadline, hasCapacity ? nextAt : Infinity) - performance.now();
      if (ended.length > 0 || failure || withinMs <= 0) return;
      await new Promise<void>((resolve) => {
        const timer = withinMs === Infinity ? undefined : setTimeout(resolve, withinMs);
        notify = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      notify = undefined;
    },
    health: () => health,
    goneUrl: () => goneUrl,
    close() {
      queue.length = 0;
      for (const connection of connections.values()) connection.close();
    },
  };
}

function outcomeOf(result: WebhookAttempt): 'delivered' | 'refused' | 'unanswered' | 'gone' {
  if (isSuccess(result)) return 'delivered';
  if (result.statusCode === null) return 'unanswered';
  return isGone(result) ? 'gone' : 'refused';
}

function toNewAttempt(
  { id, event_id: eventId, tries, due_at: dueAt, payload: stored, data, email }: DueDelivery,
  payload: string,
  result: WebhookAttempt,
  at: string,
  url: string,
): NewAttempt {
  const { statusCode, durationMs, response, error, retryAfterMs } = result;
  const common = { id, eventId, dueAt, at, statusCode, durationMs, response, error };
  if (isSuccess(result)) return Object.assign(common, { status: 'succeeded', retryInMs: null } as const);
  const posted = stored === null ? { payload, data, to: email?.to ?? null } : undefined;
  const failed = { ...common, requestHeaders: result.requestHeaders, posted };
  const retryInMs = retryDelayAfter(tries + 1, retryAfterMs, Math.random()) ?? null;
  const status = retryInMs === null ? 'failed' : 'pending';
  return { ...failed, status, retryInMs, goneUrl: isGone(result) ? url : undefined };
}
