import type { MessageChannel, MessageStatus } from './message.ts';

/** The effect of a change on a message, by its status; see `Transition` of emails. */
export interface MessageTransition {
  readonly to: MessageStatus;
  /** Statuses that this change moves. */
  readonly from: readonly MessageStatus[];
  /** Statuses that the change does not move, while the timeline records the event. */
  readonly recordOnly: readonly MessageStatus[];
  /** The entry in the timeline and the webhook event, without the channel; null for internal changes. */
  readonly event: MessageStatus | 'rescheduled' | null;
}

/**
 * Statuses in ascending order of precedence. A report moves messages of lower rank and is only recorded on others, so that
 * the order of reports does not matter. A failure ranks below a delivery, because the recipient has the message regardless of
 * later reports.
 */
const RANKS: Readonly<Record<MessageChannel, readonly MessageStatus[]>> = {
  chatapp: ['queued', 'sent', 'failed', 'delivered', 'read'],
  sms: ['queued', 'sent', 'failed', 'undelivered', 'delivered'],
};

/** Changes that a provider reports; `sent` is also our own record of the hand-over, whichever comes first. */
export const REPORTED_CHANGES = ['sent', 'delivered', 'read', 'undelivered', 'failureReported'] as const;
export type ReportedChange = (typeof REPORTED_CHANGES)[number];

/** Changes that the service makes itself. `failed` means refused at the hand-over or given up. */
const OWN_TRANSITIONS = {
  rescheduled: { to: 'scheduled', from: ['scheduled'], recordOnly: [], event: 'rescheduled' },
  canceled: { to: 'canceled', from: ['scheduled'], recordOnly: [], event: 'canceled' },
  claimed: { to: 'queued', from: ['scheduled'], recordOnly: [], event: null },
  suppressed: { to: 'suppressed', from: ['queued'], recordOnly: [], event: 'suppressed' },
  failed: { to: 'failed', from: ['queued'], recordOnly: [], event: 'failed' },
} as const satisfies Record<string, MessageTransition>;

export type MessageChange = keyof typeof OWN_TRANSITIONS | ReportedChange;

/** The state machine of messages: `test/domain/message-states.test.ts` covers every status and change. */
export function messageTransition(channel: MessageChannel, change: MessageChange): MessageTransition {
  if (change in OWN_TRANSITIONS) return OWN_TRANSITIONS[change as keyof typeof OWN_TRANSITIONS];
  const to = change === 'failureReported' ? 'failed' : (change as MessageStatus);
  const rank = RANKS[channel].indexOf(to);
  if (rank < 0) return { to, from: [], recordOnly: [], event: to };
  return { to, from: RANKS[channel].slice(0, rank), recordOnly: RANKS[channel].slice(rank), event: to };
}

/** Returns the status after a change. */
export function nextMessageStatus(status: MessageStatus, { from, to }: MessageTransition): MessageStatus {
  return from.includes(status) ? to : status;
}
