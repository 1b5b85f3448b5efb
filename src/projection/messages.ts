import { isWindowError, WINDOW_CLOSED } from '../domain/chat/window.ts';
import { eventDetail } from '../domain/event-detail.ts';
import { newId } from '../lib/ids.ts';
import type { MessageProviderName, MessageStatus } from '../domain/messages/message.ts';
import type { StateSet } from '../domain/statistics.ts';
import {
  type MessageChange,
  type MessageTransition,
  messageTransition,
  nextMessageStatus,
} from '../domain/messages/states.ts';
import { OPTED_OUT_CODE } from '../providers/twilio/errors.ts';
import { groupBy } from '../lib/group.ts';
import type { ChatReport } from '../providers/chat-provider.ts';
import { lockReported, type ReportedMessage } from '../store/messages/delivery.ts';
import {
  type ChangingMessage,
  insertMessageEvents,
  lockChanging,
  type MessageEvent,
  type MessageScope,
  type MessageUpdate,
  moveMessage,
  updateMessages,
} from '../store/messages/changes.ts';
import { requeueAsFallback } from '../store/chat/window.ts';
import { insertOptOut } from '../store/sms/opt-outs.ts';
import { afterCommit, type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import { addStatistics, type StatAddition } from '../store/statistics/additions.ts';
import { enqueueEvents } from '../store/webhooks/events.ts';
import { eventsRecorded } from '../telemetry/topics.ts';
import { messageDimensions, countChange } from './statistics.ts';

/** A change of one message. */
interface MessageChangeInput {
  readonly id: string;
  /** Equal for repeated reports of the same change. The change `sent` is recorded once per message. */
  readonly dedupe_key?: string;
  readonly error?: string;
  /** The provider's own code. */
  readonly error_code?: string;
  readonly provider?: MessageProviderName;
  readonly provider_message_id?: string;
}

/** A change that the status of its message allows. */
interface Step {
  readonly input: MessageChangeInput;
  readonly message: ChangingMessage;
  readonly transition: MessageTransition;
  /** Its entry in the timeline; undefined if it has none. */
  readonly event: MessageEvent | undefined;
}

/**
 * The only writer of the status of chat-app messages and SMS after their creation. It applies a change to the messages whose
 * status allows it, adds it to their timelines and queues webhooks. The caller owns the transaction.
 * @param within restricts the change to messages of this organization and channel
 * @returns the resulting statuses of the messages that were changed or got a timeline entry
 */
export async function projectMessages(
  db: Db,
  change: MessageChange,
  inputs: readonly MessageChangeInput[],
  within?: MessageScope,
): Promise<Map<string, MessageStatus>> {
  const locked = await lockChanging(
    db,
    inputs.map(({ id }) => id),
    within,
  );
  const steps = inputs.flatMap((input): Step | [] => {
    const message = locked.get(input.id);
    const transition = message && messageTransition(message.channel, change);
    if (!transition || ![...transition.from, ...transition.recordOnly].includes(message.status)) return [];
    return { input, message, transition, event: toEvent(message, transition, input) };
  });
  const recorded = await insertMessageEvents(
    db,
    steps.flatMap(({ event }) => event ?? []),
  );
  const applied = steps.filter(({ event }) => !event || recorded.has(event.id));
  const { statuses, updates, additions } = resultsOf(applied, recorded, change);
  await Promise.all([updateMessages(db, updates), addStatistics(db, additions)]);
  for (const { input, message } of applied) await recordOptOut(db, message, input);
  await enqueueEvents(
    db,
    applied.flatMap(({ input, message, event }) => {
      if (!event) return [];
      const { id: event_id, type } = event;
      const data = eventData(message, statuses.get(message.id) as MessageStatus, input);
      return { event_id, org_id: message.org_id, type, created_at: recorded.get(event_id) as string, data };
    }),
  );
  for (const [kind, same] of groupBy(applied, ({ message }) => message.channel)) {
    const { event } = messageTransition(kind, change);
    if (event !== null) afterCommit(db, () => eventsRecorded.publish({ kind, event, count: same.length }));
  }
  return statuses;
}

/** Computes what changes result in: statuses, updates of rows, and additions to the statistics. */
function resultsOf(
  steps: readonly Step[],
  recorded: ReadonlyMap<string, string>,
  change: MessageChange,
): { statuses: Map<string, MessageStatus>; updates: MessageUpdate[]; additions: StatAddition[] } {
  const statuses = new Map<string, MessageStatus>();
  const updates = new Map<string, MessageUpdate>();
  const additions: StatAddition[] = [];
  for (const { input, message, transition, event } of steps) {
    const { id } = message;
    const earlier = updates.get(id);
    const before = statuses.get(id) ?? message.status;
    const status = nextMessageStatus(before, transition);
    statuses.set(id, status);
    // Several reports may concern one message: the first one moves it.
    const { provider, provider_message_id, error, error_code } = input;
    const moved = status !== before && { status, error, error_code };
    const last_event_at = event && recorded.get(event.id);
    const counted = earlier?.reached ?? message.reached;
    const added = statisticsOf(message, counted, [before, transition.to], change, last_event_at);
    if (added) additions.push(added.addition);
    const reached = added && { reached: added.progress.reached };
    updates.set(id, { id, provider, provider_message_id, ...earlier, ...moved, ...reached, last_event_at });
  }
  return { statuses, updates: [...updates.values()], additions };
}

/** Returns the entry of a change in the timeline of its message; undefined if it has none. */
function toEvent(
  { id: message_id, channel }: ChangingMessage,
  { event, to }: MessageTransition,
  { error, error_code, dedupe_key }: MessageChangeInput,
): MessageEvent | undefined {
  if (event === null) return undefined;
  const identity = { id: newId('evt'), message_id, dedupe_key: to === 'sent' ? 'sent' : dedupe_key };
  return { ...identity, type: `${channel}.${event}`, detail: eventDetail({ error, error_code }) };
}

/** Returns the addition of a change to the statistics. @param reached after earlier changes of the same transaction */
function statisticsOf(
  message: ChangingMessage,
  reached: StateSet | null,
  statuses: readonly MessageStatus[],
  change: MessageChange,
  at: string | undefined,
): ReturnType<typeof countChange> {
  // A message of an earlier version is left to the backfill, which counts its timeline.
  if (reached === null) return undefined;
  const times = { sent_at: change === 'sent' ? at : null, delivered_at: change === 'delivered' ? at : null };
  return countChange(messageDimensions(message), { reached, bounced_for: null }, { statuses, ...times });
}

/** Twilio refuses SMS to recipients that have opted out, which may have happened before the sender was connected. */
async function recordOptOut(
  db: Db,
  { channel, org_id, from, to }: ChangingMessage,
  { error_code }: MessageChangeInput,
): Promise<void> {
  if (channel === 'sms' && error_code === String(OPTED_OUT_CODE)) await insertOptOut(db, org_id, from, to);
}

/** The data of a webhook event about a message. */
export function eventData(
  message: Pick<ChangingMessage, 'id' | 'channel' | 'from' | 'to' | 'country' | 'type' | 'segments'>,
  status: MessageStatus,
  {
    error,
    error_code,
    scheduled_at,
  }: Pick<MessageChangeInput, 'error' | 'error_code'> & { scheduled_at?: string } = {},
): Record<string, unknown> {
  const { id, channel, from, to, country, type, segments } = message;
  return {
    messageId: id,
    from,
    to,
    country,
    ...(channel === 'sms' ? { segments } : { type }),
    status,
    ...(scheduled_at !== undefined && { scheduledAt: scheduled_at }),
    ...(error !== undefined && { error }),
    ...(error_code !== undefined && { errorCode: error_code }),
  };
}

/**
 * Reschedules a message. The caller owns the transaction.
 * @returns the new time; undefined if the message is not scheduled or the time is not allowed
 */
export async function projectMessageReschedule(
  db: Db,
  scope: MessageScope,
  id: string,
  scheduledAt: string,
): Promise<string | undefined> {
  const message = (await lockChanging(db, [id], scope)).get(id);
  if (message?.status !== 'scheduled') return undefined;
  const moved = await moveMessage(db, id, scheduledAt);
  if (!moved) return undefined;
  const type = `${message.channel}.rescheduled`;
  const event_id = newId('evt');
  const recorded = await insertMessageEvents(db, [{ id: event_id, message_id: id, type, detail: eventDetail(moved) }]);
  const last_event_at = recorded.get(event_id) as string;
  await updateMessages(db, [{ id, last_event_at }]);
  const data = eventData(message, 'scheduled', { scheduled_at: moved.scheduled_at });
  await enqueueEvents(db, [{ event_id, org_id: message.org_id, type, created_at: last_event_at, data }]);
  afterCommit(db, () => eventsRecorded.publish({ kind: message.channel, event: 'rescheduled', count: 1 }));
  return moved.scheduled_at;
}

/** The start of the placeholder of an erased recipient: numbers and ids of users have other forms. */
const ERASED_PREFIX = 'erased-';

/** The error of a failure that the provider reports without a reason. */
const NO_REASON = 'The provider could not deliver it.';

/**
 * Applies a provider's reports in one transaction. Repeated reports change nothing, nor do reports that do not match their
 * message's sender, recipient or provider id.
 * @returns true if at least one report names a message of ours, and all of those match it
 */
export async function projectMessageReports(
  pool: Pool,
  provider: MessageProviderName,
  reports: readonly ChatReport[],
): Promise<boolean> {
  const named = reports.flatMap((report) =>
    report.messageId === undefined ? [] : { ...report, id: report.messageId },
  );
  if (named.length === 0) return false;
  return transaction(pool, async (client) => {
    // Locks all messages first, in order: concurrent reports would otherwise deadlock.
    const messages = await lockReported(
      client,
      named.map(({ id }) => id),
    );
    // Reports about a text that was replaced by its fallback template match their message, but change nothing.
    const obsolete = named.filter(({ id, providerMessageId }) =>
      messages.get(id)?.replaced_ids.includes(providerMessageId),
    );
    const matching = named.filter(
      (report) => !obsolete.includes(report) && matches(provider, report, messages.get(report.id)),
    );
    const windowErrors = matching.filter(
      ({ change, errorCode }) => change === 'failed' && isWindowError(provider, errorCode),
    );
    const aboutReplacedText = windowErrors.filter((report) => isAboutReplacedText(report, messages.get(report.id)));
    const requeued = await requeueAsFallback(
      client,
      windowErrors.map(({ id }) => id),
    );
    const applied = matching.filter((report) => !requeued.includes(report.id) && !aboutReplacedText.includes(report));
    for (const [change, same] of groupBy(applied, (report) => report.change)) {
      const isFailure = change === 'failed' || change === 'undelivered';
      await projectMessages(
        client,
        change === 'failed' ? 'failureReported' : change,
        same.map(({ id, providerMessageId, dedupeKey, error, errorCode }) => ({
          id,
          provider,
          provider_message_id: providerMessageId,
          dedupe_key: dedupeKey,
          ...(isFailure && { error: error ?? NO_REASON }),
          ...(isFailure &&
            errorCode !== undefined && {
              error_code: isWindowError(provider, errorCode) ? WINDOW_CLOSED : errorCode,
            }),
        })),
      );
    }
    const known = [...obsolete, ...matching];
    return messages.size > 0 && named.every((report) => !messages.has(report.id) || known.includes(report));
  });
}

/**
 * Returns true if a report of a closed window is not about the fallback template, which needs no open window. A text whose answer
 * was lost has an id that we do not know.
 */
function isAboutReplacedText({ providerMessageId }: ChatReport, message: ReportedMessage | undefined): boolean {
  return message !== undefined && message.is_fallback && message.provider_message_id !== providerMessageId;
}

/** Checks that a report belongs to this message, since message ids are not secret. */
function matches(
  provider: MessageProviderName,
  { providerMessageId, endpoints }: ChatReport,
  message: ReportedMessage | undefined,
): boolean {
  if (!message) return false;
  const isItsId = message.provider_message_id === providerMessageId;
  if (message.provider_message_id !== null && !isItsId && !message.is_ambiguous) return false;
  if (!endpoints) return true;
  const { from = message.from, to = message.to, phoneNumberId } = endpoints;
  // The recipient of an erased message is not stored any more; the provider's id still identifies the message.
  const isErased = isItsId && message.to.startsWith(ERASED_PREFIX);
  if (from !== message.from || (to !== message.to && !isErased)) return false;
  // If the number has been disconnected, only the provider's id can identify the message.
  if (message.provider === null) return isItsId;
  return message.provider === provider && (phoneNumberId ?? message.phone_number_id) === message.phone_number_id;
}
