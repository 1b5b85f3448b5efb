import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel';

/** The label `kind` of `docs/metrics.md`. */
export type MessageKind = 'email' | 'chatapp' | 'sms';

/**
 * Publishes events of one type within this process. Publishers do not depend on the metrics, and publishing costs almost
 * nothing without a listener. An event contains no address, id or organization.
 */
export interface Topic<T> {
  readonly publish: (event: T) => void;
  /** @returns a function that removes the listener */
  readonly listen: (listener: (event: T) => void) => () => void;
}

function topic<T>(topicName: string): Topic<T> {
  const name = `sendwright:${topicName}`;
  const diagnostics = channel(name);
  return {
    publish: (event) => diagnostics.publish(event),
    listen(listener) {
      const onMessage = (event: unknown): void => listener(event as T);
      subscribe(name, onMessage);
      return () => {
        unsubscribe(name, onMessage);
      };
    },
  };
}

/** Messages were accepted. Published after the commit. */
export const messagesAccepted = topic<{
  readonly kind: MessageKind;
  readonly by: 'single' | 'batch';
  readonly count: number;
}>('messages accepted');

/** Timelines got a new entry. Published after the commit. `event` is its type without the kind, for example `delivered`. */
export const eventsRecorded = topic<{
  readonly kind: MessageKind;
  readonly event: string;
  readonly count: number;
  /** The number of bounces per reason. */
  readonly reasons?: ReadonlyMap<string, number>;
}>('events recorded');

/** Scheduled messages were claimed. Each value is the delay after the scheduled time. */
export const messagesClaimed = topic<{ readonly kind: MessageKind; readonly overdueSeconds: readonly number[] }>(
  'messages claimed',
);

/** A provider accepted messages. Each value is the delay after the message was due. */
export const messagesSent = topic<{ readonly kind: MessageKind; readonly secondsAfterDue: readonly number[] }>(
  'messages sent',
);

/** A provider answered a call, or the call failed. */
export const providerCalled = topic<{
  readonly provider: string;
  readonly operation: 'send' | 'find' | 'report';
  readonly seconds: number;
  /** The number of messages per outcome; for `find` and `report`, whether the provider answered. */
  readonly outcomes: ReadonlyMap<string, number>;
}>('provider called');

/** Messages were quarantined, because they crashed the processes that delivered them. They are not retried. */
export const messagesQuarantined = topic<{ readonly kind: MessageKind; readonly count: number }>(
  'messages quarantined',
);

/** The results of reconciling ambiguous calls: a provider may have accepted the call, but its outcome was not recorded. */
export const AMBIGUOUS_OUTCOMES = [
  /** The provider has it. */
  'found',
  /** The provider does not have it, so it is sent again. */
  'lost',
  /** Unknown. It is sent again, so it may arrive twice. */
  'risked',
  /** Unknown. It is not sent again, so it may never arrive. */
  'given_up',
] as const;
export type AmbiguousOutcome = (typeof AMBIGUOUS_OUTCOMES)[number];
export const ambiguousCallsResolved = topic<{
  readonly kind: MessageKind;
  readonly provider: string;
  readonly outcome: AmbiguousOutcome;
  readonly count: number;
}>('ambiguous calls resolved');

/** States of workflows whose messages upkeep rescues: see `WorkflowState`. */
export const RESCUED_STATES = ['missing', 'closed', 'failing', 'idle'] as const;

/** Upkeep gave messages a new workflow because theirs was lost, closed early or made no progress. */
export const messagesRescued = topic<{
  readonly kind: MessageKind;
  readonly state: (typeof RESCUED_STATES)[number];
  readonly count: number;
}>('messages rescued');

/** The relay made the Temporal request of an outbox row. */
export const outboxDispatched = topic<{
  readonly action: string;
  readonly outcome: 'done' | 'refused' | 'unreachable';
  readonly count: number;
}>('outbox dispatched');

/** A webhook was posted to a customer's endpoint. */
export const webhookPosted = topic<{
  readonly outcome: 'delivered' | 'refused' | 'unanswered' | 'gone';
  readonly seconds: number;
}>('webhook posted');

/** An HTTP request was answered. `route` is the pattern of the route table, or `none` if no route matched. */
export const requestAnswered = topic<{
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
}>('request answered');

/** Requests were omitted from the log of API requests, because it could not keep up. */
export const requestsNotLogged = topic<{ readonly count: number }>('requests not logged');

/** Why callbacks of providers were not kept: see `sendwright_callbacks_dropped_total`. */
export const CALLBACK_DROP_REASONS = [
  /** More callbacks than an organization's own token may sign. */
  'rate',
  /** The number has as many unknown callbacks as are kept. */
  'number',
  /** The number has received as many messages of users as are kept in a day. */
  'received',
  /** The oldest unknown callbacks exceeded the bytes that are kept of all. */
  'size',
] as const;

/** Callbacks of providers were refused or deleted before their time, because there were too many of them. */
export const callbacksDropped = topic<{
  readonly reason: (typeof CALLBACK_DROP_REASONS)[number];
  readonly count: number;
}>('callbacks dropped');

/** Counts how often each value occurs. */
export function tally(values: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}
