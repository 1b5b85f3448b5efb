import type { EmailEventType } from '../event-types.ts';
import type { EmailStatus } from './email.ts';

/**
 * The state machine of an email as data. `src/README.md` draws it; `test/domain/email-states.test.ts` covers every pair.
 * Depending on the email's status, a change moves it to `to` (status in `from`), only adds an entry to the timeline (status
 * in `recordOnly`), or has no effect.
 */
export interface Transition {
  /** The new status; null when it never changes. */
  readonly to: EmailStatus | null;
  /** Statuses that this change moves. */
  readonly from: readonly EmailStatus[];
  /** Statuses that the change does not move, while the timeline records the event. */
  readonly recordOnly: readonly EmailStatus[];
  /** The entry in the timeline; null for internal changes. */
  readonly event: EmailEventType | null;
  /** Set if a program and not a person caused it; the webhook event contains that. */
  readonly isByMachine?: true;
}

/**
 * Changes that providers report after the hand-over, in ascending order of precedence. A report moves only emails of lower
 * rank and is recorded on others.
 */
export const REPORTED_STATUSES = [
  'sent',
  'delivery_delayed',
  'delivered',
  'opened',
  'clicked',
  'bounced',
  'complained',
] as const satisfies readonly EmailStatus[];
type ReportedStatus = (typeof REPORTED_STATUSES)[number];

export function isReported(status: EmailStatus): boolean {
  return REPORTED_STATUSES.some((reported) => reported === status);
}

/**
 * A report may arrive before our own record of the hand-over, so it also moves `queued`; and it corrects an email that was
 * given up while ambiguous (`failed`). Hits of our own tracking prove no hand-over: `projectHits` decides which of them move these.
 */
function reportTransition(to: ReportedStatus): Transition {
  const rank = REPORTED_STATUSES.indexOf(to);
  return {
    to,
    from: ['queued', 'failed', ...REPORTED_STATUSES.slice(0, rank)],
    recordOnly: REPORTED_STATUSES.slice(rank),
    event: `email.${to}`,
  };
}

/**
 * Returns the transition of an open or click caused by a program: recorded on an email that was sent, without changing its
 * status.
 */
function machineTransition(event: EmailEventType): Transition {
  return { to: null, from: [], recordOnly: ['queued', 'failed', ...REPORTED_STATUSES], event, isByMachine: true };
}

/** Returns the transition of an email that was sent to some recipients and not, or not yet, to one of the others. */
function recipientTransition(event: EmailEventType): Transition {
  return { to: null, from: [], recordOnly: ['queued', 'failed', ...REPORTED_STATUSES], event };
}

/** Every change of an email after its creation. */
export const TRANSITIONS = {
  rescheduled: { to: 'scheduled', from: ['scheduled'], recordOnly: [], event: 'email.rescheduled' },
  canceled: { to: 'canceled', from: ['scheduled'], recordOnly: [], event: 'email.canceled' },
  claimed: { to: 'queued', from: ['scheduled'], recordOnly: [], event: null },
  suppressed: { to: 'suppressed', from: ['queued'], recordOnly: [], event: 'email.suppressed' },
  rejected: { to: 'rejected', from: ['queued'], recordOnly: [], event: 'email.rejected' },
  failed: { to: 'failed', from: ['queued'], recordOnly: [], event: 'email.failed' },
  sent: reportTransition('sent'),
  delivery_delayed: reportTransition('delivery_delayed'),
  delivered: reportTransition('delivered'),
  opened: reportTransition('opened'),
  clicked: reportTransition('clicked'),
  bounced: reportTransition('bounced'),
  complained: reportTransition('complained'),
  unsubscribed: {
    to: null,
    from: [],
    recordOnly: ['queued', 'failed', ...REPORTED_STATUSES],
    event: 'email.unsubscribed',
  },
  delivery_delayed_for_one: recipientTransition('email.delivery_delayed'),
  failed_for_one: recipientTransition('email.failed'),
  opened_by_machine: machineTransition('email.opened'),
  clicked_by_machine: machineTransition('email.clicked'),
} as const satisfies Record<string, Transition>;
export type EmailChange = keyof typeof TRANSITIONS;

/** Returns the status after a change. */
export function nextStatus(status: EmailStatus, change: EmailChange): EmailStatus {
  const transition: Transition = TRANSITIONS[change];
  return transition.from.includes(status) ? (transition.to ?? status) : status;
}
