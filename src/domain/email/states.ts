import type { EmailEventType } from '../event-types.ts';
import type { EmailStatus } from './email.ts';

/**
 * The state machine of an email as data. `src/README.md` draws it; `test/domain/email-states.test.ts` covers every pair.
 * Depending on the email's status, a change moves it to `to` (status in `from`), only adds an entry to the timeline (status
 * in `noted`), or has no effect.
 */
export interface Transition {
  /** The new status; null when it never changes. */
  readonly to: EmailStatus | null;
  /** Statuses that this change moves. */
  readonly from: readonly EmailStatus[];
  /** Statuses that the change does not move, while the timeline records the event. */
  readonly noted: readonly EmailStatus[];
  /** The entry in the timeline; null for internal changes. */
  readonly event: EmailEventType | null;
  /** Set if a program and not a person caused it; the webhook event contains that. */
  readonly isByMachine?: true;
}

/**
 * Changes that providers report after the hand-over, in ascending order of precedence. A report moves only emails of lower
 * rank and is recorded on others.
 */
export const REPORTED = [
  'sent',
  'delivery_delayed',
  'delivered',
  'opened',
  'clicked',
  'bounced',
  'complained',
] as const satisfies readonly EmailStatus[];
type Reported = (typeof REPORTED)[number];

/**
 * A report may arrive before our own record of the hand-over, so it also moves `queued`; and it corrects an email that was
 * given up while ambiguous (`failed`). Hits of our own tracking prove no hand-over: `projectHits` decides which of them move these.
 */
function report(to: Reported): Transition {
  const rank = REPORTED.indexOf(to);
  return {
    to,
    from: ['queued', 'failed', ...REPORTED.slice(0, rank)],
    noted: REPORTED.slice(rank),
    event: `email.${to}`,
  };
}

/**
 * Returns the transition of an open or click caused by a program: recorded on an email that was sent, without changing its
 * status.
 */
function byMachine(event: EmailEventType): Transition {
  return { to: null, from: [], noted: ['queued', 'failed', ...REPORTED], event, isByMachine: true };
}

/** Every change of an email after its creation. */
export const TRANSITIONS = {
  rescheduled: { to: 'scheduled', from: ['scheduled'], noted: [], event: 'email.rescheduled' },
  canceled: { to: 'canceled', from: ['scheduled'], noted: [], event: 'email.canceled' },
  claimed: { to: 'queued', from: ['scheduled'], noted: [], event: null },
  suppressed: { to: 'suppressed', from: ['queued'], noted: [], event: 'email.suppressed' },
  rejected: { to: 'rejected', from: ['queued'], noted: [], event: 'email.rejected' },
  failed: { to: 'failed', from: ['queued'], noted: [], event: 'email.failed' },
  sent: report('sent'),
  delivery_delayed: report('delivery_delayed'),
  delivered: report('delivered'),
  opened: report('opened'),
  clicked: report('clicked'),
  bounced: report('bounced'),
  complained: report('complained'),
  unsubscribed: { to: null, from: [], noted: ['queued', 'failed', ...REPORTED], event: 'email.unsubscribed' },
  opened_by_machine: byMachine('email.opened'),
  clicked_by_machine: byMachine('email.clicked'),
} as const satisfies Record<string, Transition>;
export type EmailChange = keyof typeof TRANSITIONS;

/** Returns the status after a change. */
export function nextStatus(status: EmailStatus, change: EmailChange): EmailStatus {
  const transition: Transition = TRANSITIONS[change];
  return transition.from.includes(status) ? (transition.to ?? status) : status;
}
