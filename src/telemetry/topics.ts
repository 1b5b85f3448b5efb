import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel';

/** Messages of one kind, as `docs/metrics.md` calls them. */
export type MessageKind = 'email' | 'chatapp';

/**
 * News of one kind, told within this process to whoever listens. Who tells them knows no metrics, and pays next to
 * nothing where nobody listens. No news names an address, an id or an organization.
 */
export interface Topic<T> {
  readonly tell: (news: T) => void;
  /** @returns what ends it */
  readonly listen: (listener: (news: T) => void) => () => void;
}

function topic<T>(about: string): Topic<T> {
  const name = `sendwright:${about}`;
  const lane = channel(name);
  return {
    tell: (news) => lane.publish(news),
    listen(listener) {
      const hear = (news: unknown): void => listener(news as T);
      subscribe(name, hear);
      return () => {
        unsubscribe(name, hear);
      };
    },
  };
}

/** Messages were accepted, and that is committed. */
export const accepted = topic<{
  readonly kind: MessageKind;
  readonly by: 'single' | 'batch';
  readonly count: number;
}>('accepted');

/** Timelines have a new line, and that is committed: `event` is its type without the kind, as in `delivered`. */
export const noted = topic<{
  readonly kind: MessageKind;
  readonly event: string;
  readonly count: number;
  /** Of bounces: how many for which reason. */
  readonly reasons?: ReadonlyMap<string, number>;
}>('noted');

/** Scheduled messages were claimed: how many seconds after their time each. */
export const claimed = topic<{ readonly lateness: readonly number[] }>('claimed');

/** A provider took messages: how many seconds after each was due. */
export const handedOver = topic<{ readonly kind: MessageKind; readonly after: readonly number[] }>('handed over');

/** A provider was called. */
export const providerCalled = topic<{
  readonly provider: string;
  readonly operation: 'send' | 'find' | 'report';
  readonly seconds: number;
  /** The number of messages per outcome; of a question, whether it was answered. */
  readonly outcomes: ReadonlyMap<string, number>;
}>('provider called');

/** Messages ended the processes that delivered them, and are not tried again. */
export const quarantined = topic<{ readonly kind: MessageKind; readonly count: number }>('quarantined');

/** How ambiguous calls were resolved: calls that a provider may have taken, and whose end was not recorded. */
export const AMBIGUOUS_OUTCOMES = [
  /** The provider has it. */
  'found',
  /** The provider does not have it, so it is sent. */
  'lost',
  /** Unknown, and it is sent again: it may arrive twice. */
  'risked',
  /** Unknown, and it is not sent again: it may never arrive. */
  'given_up',
] as const;
export type AmbiguousOutcome = (typeof AMBIGUOUS_OUTCOMES)[number];
export const ambiguousEnded = topic<{
  readonly kind: MessageKind;
  readonly provider: string;
  readonly outcome: AmbiguousOutcome;
  readonly count: number;
}>('ambiguous call ended');

/** States of workflows from which upkeep rescues messages: see `WorkflowState`. */
export const RESCUED_FROM = ['missing', 'closed', 'failing', 'idle'] as const;

/** Upkeep gave messages a new workflow because theirs was lost, closed early or made no progress. */
export const rescued = topic<{
  readonly kind: MessageKind;
  readonly state: (typeof RESCUED_FROM)[number];
  readonly count: number;
}>('rescued');

/** The relay asked Temporal for what an outbox row says. */
export const carried = topic<{
  readonly action: string;
  readonly outcome: 'done' | 'refused' | 'unreachable';
  readonly count: number;
}>('carried');

/** A customer's endpoint was posted to. */
export const posted = topic<{
  readonly outcome: 'delivered' | 'refused' | 'unanswered' | 'gone';
  readonly seconds: number;
}>('posted');

/** A request was answered; `route` as the route table has it, `none` where no route was meant. */
export const answered = topic<{
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
}>('answered');

/** How many of each. */
export function tally(values: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}
