import type { EmailStatus } from './email.ts';

/**
 * The state machine of an email as data. `src/README.md` draws it; `test/domain/email-states.test.ts` walks every pair.
 *
 * A change does one of three things to an email, by the status it finds:
 * moves it to `to` (status in `from`), adds a line to the timeline only (status in `noted`), or nothing at all.
 */
export interface Transition {
  /** What the status becomes; null when it never changes. */
  readonly to: EmailStatus | null;
  /** Statuses that this change moves. */
  readonly from: readonly EmailStatus[];
  /** Statuses that stay as they are while the timeline notes the event. */
  readonly noted: readonly EmailStatus[];
  /** The line in the timeline; none when the change is nobody's business but ours. */
  readonly event: EmailEventType | null;
}

/** Lines of a timeline, and types of customers' webhooks. */
export type EmailEventType =
  | 'email.queued'
  | 'email.scheduled'
  | 'email.rescheduled'
  | 'email.sent'
  | 'email.delivery_delayed'
  | 'email.delivered'
  | 'email.opened'
  | 'email.clicked'
  | 'email.bounced'
  | 'email.complained'
  | 'email.unsubscribed'
  | 'email.suppressed'
  | 'email.canceled'
  | 'email.rejected'
  | 'email.failed';

/**
 * What a provider tells us after the hand-over, mildest first. A later report never lowers the status:
 * it moves only emails that stand lower in this list, and is noted on the rest.
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
 * A report may overtake our own record of the hand-over, so `queued` is moved too; and an email that was given up
 * without knowing whether the provider had it (`failed`) is put right by the provider's word.
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
} as const satisfies Record<string, Transition>;
export type EmailChange = keyof typeof TRANSITIONS;

/** The status after `change` finds an email in `status`: the same one when it is only noted or has no effect. */
export function nextStatus(status: EmailStatus, change: EmailChange): EmailStatus {
  const transition: Transition = TRANSITIONS[change];
  return transition.from.includes(status) ? (transition.to ?? status) : status;
}
