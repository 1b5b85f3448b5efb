import type { ChatStatus } from './chat.ts';

/** Lines of a chat-app message's timeline, and types of customers' webhooks. */
export type ChatEventType = `chatapp.${ChatStatus}`;

/** What one change does to a message, by the status it finds; see `Transition` of emails. */
export interface ChatTransition {
  readonly to: ChatStatus;
  /** Statuses that this change moves. */
  readonly from: readonly ChatStatus[];
  /** Statuses that stay as they are while the timeline notes the event. */
  readonly noted: readonly ChatStatus[];
  readonly event: ChatEventType;
}

/**
 * Statuses from the one that gives way to all others to the one that nothing changes any more. A report moves messages
 * that stand lower and is noted on the rest, so that the order in which reports come decides nothing. A failure counts
 * before a delivery only: who has the message on his phone has it, whatever is told afterwards.
 */
export const CHAT_RANKS = ['queued', 'sent', 'failed', 'delivered', 'read'] as const satisfies readonly ChatStatus[];

function report(to: Exclude<ChatStatus, 'queued'>): ChatTransition {
  const rank = CHAT_RANKS.indexOf(to);
  return { to, from: CHAT_RANKS.slice(0, rank), noted: CHAT_RANKS.slice(rank), event: `chatapp.${to}` };
}

/** Every change of a message after its creation. */
export const CHAT_TRANSITIONS = {
  /** A provider took it: by our own record, or by its report, which may come first. */
  sent: report('sent'),
  delivered: report('delivered'),
  read: report('read'),
  /** A provider reports that it will not arrive. */
  undelivered: report('failed'),
  /** Refused at the hand-over or given up: ours to say only while nothing was reported. */
  failed: { to: 'failed', from: ['queued'], noted: [], event: 'chatapp.failed' },
} as const satisfies Record<string, ChatTransition>;
export type ChatChange = keyof typeof CHAT_TRANSITIONS;

/** The status after `change` finds a message in `status`. */
export function nextChatStatus(status: ChatStatus, change: ChatChange): ChatStatus {
  const { from, to }: ChatTransition = CHAT_TRANSITIONS[change];
  return from.includes(status) ? to : status;
}
