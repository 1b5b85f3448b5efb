import type { ChatProviderName, ChatStatus } from '../domain/chat.ts';
import { CHAT_TRANSITIONS, type ChatChange } from '../domain/chat-states.ts';
import { groupBy } from '../domain/group.ts';
import { newId } from '../domain/ids.ts';
import type { ChatReport } from '../providers/chat-provider.ts';
import { lockChatStatuses } from '../store/chat-attempts.ts';
import { type ChangedChat, changeChats } from '../store/chat-changes.ts';
import { afterCommit, type Db, type Pool, transaction } from '../store/pool.ts';
import { noted } from '../telemetry/topics.ts';

/** A change of one message. */
export type ChatWish = Omit<ChangedChat, 'event_id' | 'dedupe_key'> & {
  /** The same for every repetition of what is told. That a message was sent is told once, whoever says it first. */
  readonly dedupe_key: string;
};

/**
 * The one writer of a chat-app message's status after its creation: makes a change to messages that it applies to, adds
 * it to their timelines and tells customers' endpoints. The caller owns the transaction.
 * @returns the statuses afterwards of those that were changed or noted
 */
export async function projectChat(
  db: Db,
  change: ChatChange,
  messages: readonly ChatWish[],
): Promise<Map<string, ChatStatus>> {
  const now = Date.now();
  const wishes = messages.map((message) => ({
    ...message,
    event_id: newId('evt', now),
    dedupe_key: change === 'sent' ? 'sent' : message.dedupe_key,
  }));
  const transition = CHAT_TRANSITIONS[change];
  const changed = await changeChats(db, transition, wishes);
  const event = transition.event.slice('chatapp.'.length);
  if (changed.length > 0) afterCommit(db, () => noted.tell({ kind: 'chatapp', event, count: changed.length }));
  return new Map(changed.map(({ id, status }) => [id, status]));
}

/** Of a failure of which the provider does not say why. */
const NO_REASON = 'The provider could not deliver it.';

/**
 * Writes down what a provider reports, in one transaction. What was reported before changes nothing.
 * @returns whether any of it is about a message of ours
 */
export async function projectChatReports(
  pool: Pool,
  provider: ChatProviderName,
  reports: readonly ChatReport[],
): Promise<boolean> {
  const named = reports.flatMap((report) =>
    report.messageId === undefined ? [] : { ...report, id: report.messageId },
  );
  if (named.length === 0) return false;
  return transaction(pool, async (client) => {
    // Two that change the same messages in several ways wait here, and not in a circle.
    const known = await lockChatStatuses(
      client,
      named.map(({ id }) => id),
    );
    for (const [change, same] of groupBy(named, (report) => report.change)) {
      const isFailure = change === 'failed';
      await projectChat(
        client,
        isFailure ? 'undelivered' : change,
        same.map(({ id, providerMessageId, dedupeKey, error, errorCode }) => ({
          id,
          provider,
          provider_message_id: providerMessageId,
          dedupe_key: dedupeKey,
          ...(isFailure && { error: error ?? NO_REASON }),
          ...(isFailure && errorCode !== undefined && { error_code: errorCode }),
        })),
      );
    }
    return known.size > 0;
  });
}
