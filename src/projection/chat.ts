import type { ChatProviderName, ChatStatus } from '../domain/chat/chat.ts';
import { CHAT_TRANSITIONS, type ChatChange } from '../domain/chat/states.ts';
import { groupBy } from '../lib/group.ts';
import { newId } from '../domain/ids.ts';
import type { ChatReport } from '../providers/chat-provider.ts';
import { lockReportedChats, type ReportedChat } from '../store/chat/attempts.ts';
import { type ChangedChat, changeChats } from '../store/chat/changes.ts';
import { afterCommit, type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import { noted } from '../telemetry/topics.ts';

/** A change of one message. */
export type ChatUpdate = Omit<ChangedChat, 'event_id' | 'dedupe_key'> & {
  /** Equal for repeated reports of the same change. The change `sent` is recorded once per message. */
  readonly dedupe_key: string;
};

/**
 * The only writer of a chat-app message's status after its creation. It applies a change, adds it to the timelines and queues
 * webhooks. The caller owns the transaction.
 * @returns the resulting statuses of the messages that were changed or got a timeline entry
 */
export async function projectChat(
  db: Db,
  change: ChatChange,
  messages: readonly ChatUpdate[],
): Promise<Map<string, ChatStatus>> {
  const now = Date.now();
  const updates = messages.map((message) => ({
    ...message,
    event_id: newId('evt', now),
    dedupe_key: change === 'sent' ? 'sent' : message.dedupe_key,
  }));
  const transition = CHAT_TRANSITIONS[change];
  const changed = await changeChats(db, transition, updates);
  const event = transition.event.slice('chatapp.'.length);
  if (changed.length > 0) afterCommit(db, () => noted.publish({ kind: 'chatapp', event, count: changed.length }));
  return new Map(changed.map(({ id, status }) => [id, status]));
}

/** The error of a failure that the provider reports without a reason. */
const NO_REASON = 'The provider could not deliver it.';

/**
 * Applies a provider's reports in one transaction. Repeated reports change nothing, nor do reports that do not match their
 * message's sender, recipient or provider id.
 * @returns true if at least one report names a message of ours, and all of those match it
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
    // Locks all messages first, in order: concurrent reports would otherwise deadlock.
    const messages = await lockReportedChats(
      client,
      named.map(({ id }) => id),
    );
    const matching = named.filter((report) => matches(provider, report, messages.get(report.id)));
    for (const [change, same] of groupBy(matching, (report) => report.change)) {
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
    return messages.size > 0 && named.every((report) => !messages.has(report.id) || matching.includes(report));
  });
}

/** Checks that a report belongs to this message, since message ids are not secret. */
function matches(
  provider: ChatProviderName,
  { providerMessageId, endpoints }: ChatReport,
  message: ReportedChat | undefined,
): boolean {
  if (!message) return false;
  const isItsId = message.provider_message_id === providerMessageId;
  if (message.provider_message_id !== null && !isItsId && !message.is_ambiguous) return false;
  if (!endpoints) return true;
  const { from = message.from, to = message.to, phoneNumberId } = endpoints;
  if (from !== message.from || to !== message.to) return false;
  // If the number has been disconnected, only the provider's id can identify the message.
  if (message.provider === null) return isItsId;
  return message.provider === provider && (phoneNumberId ?? message.phone_number_id) === message.phone_number_id;
}
