import type { ChatStatus } from './chat.ts';

/** Entries of a chat-app message's timeline, and webhook event types. */
export type ChatEventType = `chatapp.${ChatStatus}`;

/** The effect of a change on a message, by its status; see `Transition` of emails. */
export interface ChatTransition {
  readonly to: ChatStatus;
  /** Statuses that this change moves. */
  readonly from: readonly ChatStatus[];
  /** Statuses that do not change, while the timeline records the event. */
  readonly noted: readonly ChatStatus[];
  readonly event: ChatEventType;
}

/**
 * Statuses in ascending order of precedence. A report moves messages of lower rank and is only recorded on others, so that
 * the order of reports does not matter. A failure ranks below a delivery: the recipient has the message regardless of
 * later reports.
 */
export const CHAT_RANKS = ['queued', 'sent', 'failed', 'delivered', 'read'] as const satisfies readonly ChatStatus[];

function report(to: Exclude<ChatStatus, 'queued'>): ChatTransition {
  const rank = CHAT_RANKS.indexOf(to);
  return { to, from: CHAT_RANKS.slice(0, rank), noted: CHAT_RANKS.slice(rank), event: `chatapp.${to}` };
}

/** Every change of a message after its creation. */
export const CHAT_TRANSITIONS = {
  /** A provider accepted it, by our own record or by its report, which may arrive first. */
  sent: report('sent'),
  delivered: report('delivered'),
  read: report('read'),
  /** A provider reports that it will not be delivered. */
  undelivered: report('failed'),
  /** Refused at the hand-over or given up; it applies only before any report. */
  failed: { to: 'failed', from: ['queued'], noted: [], event: 'chatapp.failed' },
} as const satisfies Record<string, ChatTransition>;
export type ChatChange = keyof typeof CHAT_TRANSITIONS;

/** Returns the status after a change. */
export function nextChatStatus(status: ChatStatus, change: ChatChange): ChatStatus {
  const { from, to }: ChatTransition = CHAT_TRANSITIONS[change];
  return from.includes(status) ? to : status;
}
