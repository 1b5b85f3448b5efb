import { parseMailbox } from '../domain/email/address.ts';
import type { BounceReason, EmailStatus } from '../domain/email/email.ts';
import type { MessageChannel, MessageStatus } from '../domain/messages/message.ts';
import { impliedStates, setOf, type StateSet } from '../domain/statistics.ts';
import type { CountedMessage, StatAddition, StatDimensions } from '../store/statistics/additions.ts';

/** Returns what statistics count an email by. */
export function emailDimensions(
  email: CountedMessage & { readonly from: string; readonly batch_id: string | null },
): StatDimensions {
  const { org_id, accepted_at, due_at, from, key_id, batch_id, tags } = email;
  const sender = parseMailbox(from);
  const domain = typeof sender === 'string' ? null : sender.domain;
  return { org_id, channel: 'email', accepted_at, due_at, domain, key_id, batch_id, tags };
}

/** Returns what statistics count a chat-app message or SMS by. */
export function messageDimensions(message: CountedMessage & { readonly channel: MessageChannel }): StatDimensions {
  const { org_id, channel, accepted_at, due_at, key_id, tags } = message;
  return { org_id, channel, accepted_at, due_at, domain: null, key_id, batch_id: null, tags };
}

/** The progress of a message in the statistics. */
export interface Progress {
  readonly reached: StateSet;
  readonly bounced_for: BounceReason | null;
}

/** A change of a message. */
export interface StateChange {
  /** The statuses that the message has reached with it; repeated ones add nothing. */
  readonly statuses: readonly (EmailStatus | MessageStatus)[];
  readonly bounce_reason?: BounceReason | null | undefined;
  /** When it was sent or delivered, if the change is that. */
  readonly sent_at?: string | null | undefined;
  readonly delivered_at?: string | null | undefined;
}

const [SENT, DELIVERED, BOUNCED] = [setOf('sent'), setOf('delivered'), setOf('bounced')];

/**
 * Returns what a change adds to the statistics, and the progress after it; undefined if it reaches nothing new. A state counts
 * once, whichever report implies it first. With the first bounce, all that the message has reached counts for its reason.
 */
export function countChange(
  dimensions: StatDimensions,
  { reached, bounced_for: bouncedFor }: Progress,
  { statuses, bounce_reason: reason, sent_at: sentAt = null, delivered_at: deliveredAt = null }: StateChange,
): { readonly addition: StatAddition; readonly progress: Progress } | undefined {
  const implied = statuses.reduce((set, status) => set | impliedStates(status), 0);
  const states = implied & ~reached;
  if (states === 0) return undefined;
  const isFirstBounce = (states & BOUNCED) !== 0;
  const bounced_for = bouncedFor ?? (isFirstBounce ? (reason ?? null) : null);
  const bouncedStates = isFirstBounce ? reached | states : states;
  return {
    addition: Object.assign({}, dimensions, {
      states,
      bounced_for,
      bounced_states: bounced_for === null ? null : bouncedStates,
      sent_at: states & SENT ? sentAt : null,
      delivered_at: states & DELIVERED ? deliveredAt : null,
    }),
    progress: { reached: reached | states, bounced_for },
  };
}
