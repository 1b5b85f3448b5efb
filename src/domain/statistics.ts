import type { EmailStatus } from './email/email.ts';
import type { MessageStatus } from './messages/message.ts';

/** The states that statistics count. The position of a state is its bit in `emails.reached`, so only append new ones. */
export const STATES = [
  'accepted',
  'sent',
  'delivered',
  'delayed',
  'bounced',
  'complained',
  'opened',
  'clicked',
  'suppressed',
  'rejected',
  'failed',
  'canceled',
] as const;
export type State = (typeof STATES)[number];

export const STATISTICS_CHANNELS = ['email', 'chatapp', 'sms'] as const;
export type StatisticsChannel = (typeof STATISTICS_CHANNELS)[number];

/** A set of states: bit n is `STATES[n]`. */
export type StateSet = number;

export function setOf(...states: readonly State[]): StateSet {
  return states.reduce((set, state) => set | (1 << STATES.indexOf(state)), 0);
}

/**
 * The states that each status implies. A provider's report may move an email over several states: a clicked email was opened,
 * an opened one was delivered, and every state reported after the hand-over implies sent. An address can bounce or a
 * recipient can complain without a reported delivery, so these do not imply it. `read` of a chat-app message counts as
 * opened, `undelivered` of an SMS as bounced.
 */
const IMPLIED: Readonly<Record<EmailStatus | MessageStatus, StateSet>> = {
  queued: setOf('accepted'),
  scheduled: setOf('accepted'),
  sent: setOf('accepted', 'sent'),
  delivery_delayed: setOf('accepted', 'sent', 'delayed'),
  delivered: setOf('accepted', 'sent', 'delivered'),
  opened: setOf('accepted', 'sent', 'delivered', 'opened'),
  read: setOf('accepted', 'sent', 'delivered', 'opened'),
  clicked: setOf('accepted', 'sent', 'delivered', 'opened', 'clicked'),
  bounced: setOf('accepted', 'sent', 'bounced'),
  undelivered: setOf('accepted', 'sent', 'bounced'),
  complained: setOf('accepted', 'sent', 'complained'),
  suppressed: setOf('accepted', 'suppressed'),
  rejected: setOf('accepted', 'rejected'),
  failed: setOf('accepted', 'failed'),
  canceled: setOf('accepted', 'canceled'),
};

/** Returns the states that a message with this status has reached at least. */
export function impliedStates(status: EmailStatus | MessageStatus): StateSet {
  return IMPLIED[status];
}

export type Counts = Readonly<Record<State, number>>;

/** Shares from 0 to 1; null if the denominator is 0. */
export interface Rates {
  /** Share of sent messages. */
  readonly delivery: number | null;
  /** Share of sent messages. */
  readonly bounce: number | null;
  /** Share of delivered messages. */
  readonly complaint: number | null;
  /** Share of delivered messages. */
  readonly open: number | null;
  /** Share of delivered messages. */
  readonly click: number | null;
}

export function ratesOf({ sent, delivered, bounced, complained, opened, clicked }: Counts): Rates {
  const share = (part: number, total: number) => (total === 0 ? null : part / total);
  return {
    delivery: share(delivered, sent),
    bounce: share(bounced, sent),
    complaint: share(complained, delivered),
    open: share(opened, delivered),
    click: share(clicked, delivered),
  };
}

export function addCounts(all: readonly Counts[]): Counts {
  const sums = STATES.map((state) => [state, all.reduce((sum, counts) => sum + counts[state], 0)]);
  return Object.fromEntries(sums) as Counts;
}
