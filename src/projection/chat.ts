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
  if (changed.length > 0) afterCommit(db, () => noted.publish({ kind: 'chatapp', event, count: changed.length }));
  return new Map(changed.map(({ id, status }) => [id, status]));
}

/** Of a failure of which the provider does not say why. */
const NO_REASON = 'The provider could not deliver it.';

/**
 * Writes down what a provider reports, in one transaction. What was reported before changes nothing, and neither does a
 * report that does not fit the message that it names: another sender, recipient or provider's id.
 * @returns whether some of it is about messages of ours, and all of that fits them
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
    const known = await lockReportedChats(
      client,
      named.map(({ id }) => id),
    );
    const fitting = named.filter((report) => fits(provider, report, known.get(report.id)));
    for (const [change, same] of groupBy(fitting, (report) => report.change)) {
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
    return known.size > 0 && named.every((report) => !known.has(report.id) || fitting.includes(report));
  });
}

/** Whether a report can be about this message. Ids of messages are no secrets. */
function fits(
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
  // The number may have been disconnected since: then only the provider's id can tell.
  if (message.provider === null) return isItsId;
  return message.provider === provider && (phoneNumberId ?? message.phone_number_id) === message.phone_number_id;
}
