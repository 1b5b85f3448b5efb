import type { EventDetail } from '../../domain/event-detail.ts';
import type { MessageChannel, MessageProviderName, MessageStatus } from '../../domain/messages/message.ts';
import type { Rescheduled } from '../emails/changes.ts';
import type { StateSet } from '../../domain/statistics.ts';
import { timeProblem } from '../emails/emails.ts';
import type { CountedMessage } from '../statistics/additions.ts';
import { columns } from '../postgres/columns.ts';
import { type Db, execute, queryColumn, queryRow, queryRows } from '../postgres/pool.ts';

/** A message whose status is about to change. */
export interface ChangingMessage extends CountedMessage {
  readonly id: string;
  readonly channel: MessageChannel;
  readonly from: string;
  readonly to: string;
  readonly country: string;
  readonly type: string;
  readonly status: MessageStatus;
  readonly segments: number | null;
  readonly scheduled_at: string | null;
}

/** Restricts messages to an organization and channel. */
export interface MessageScope {
  readonly orgId: string;
  readonly channel: MessageChannel;
}

/** Locks messages in the order of their ids, which prevents deadlocks. Those that do not exist are missing. */
export async function lockChanging(
  db: Db,
  ids: readonly string[],
  scope?: MessageScope,
): Promise<Map<string, ChangingMessage>> {
  if (ids.length === 0) return new Map();
  const rows = await queryRows<ChangingMessage>(db, {
    name: 'lock_changing_messages',
    text: `SELECT id, org_id, channel, "from", "to", country, type, status, segments, scheduled_at,
                  created_at::text AS accepted_at, coalesce(scheduled_at, created_at)::text AS due_at,
                  reached, key_id, nullif(tags, '[]')::text AS tags
           FROM chat_messages
           WHERE id = ANY ($1) AND ($2::text IS NULL OR (org_id = $2 AND channel = $3)) ORDER BY id FOR UPDATE`,
    values: [ids, scope?.orgId ?? null, scope?.channel ?? null],
  });
  return new Map(rows.map((row) => [row.id, row]));
}

/** An entry of a timeline. */
export interface MessageEvent {
  readonly id: string;
  readonly message_id: string;
  /** With the channel: `sms.sent`. */
  readonly type: string;
  /** An event whose key the timeline has already is not recorded again. */
  readonly dedupe_key?: string | undefined;
  readonly detail?: EventDetail | undefined;
}

/** Adds entries to the timelines of locked messages. @returns the time of each entry that was added, by its id */
export async function insertMessageEvents(db: Db, events: readonly MessageEvent[]): Promise<Map<string, string>> {
  if (events.length === 0) return new Map();
  const rows = await queryRows<{ id: string; created_at: string }>(db, {
    name: 'insert_message_events',
    text: `INSERT INTO chat_events (message_id, id, type, created_at, dedupe_key, detail)
           SELECT input.message_id, input.id, input.type, greatest(message.last_event_at, clock_timestamp()),
                  input.dedupe_key, input.detail
           FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::jsonb[])
                  AS input(message_id, id, type, dedupe_key, detail)
                JOIN chat_messages AS message ON message.id = input.message_id AND message.id = ANY ($1)
           ON CONFLICT (message_id, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING
           RETURNING id, created_at`,
    values: columns(events, 'message_id', 'id', 'type', 'dedupe_key', 'detail'),
  });
  return new Map(rows.map(({ id, created_at }) => [id, created_at]));
}

/** The update of one message's row. */
export interface MessageUpdate {
  readonly id: string;
  /** The new status, with its error and the provider's own code; without it all three stay. */
  readonly status?: MessageStatus;
  readonly error?: string | undefined;
  readonly error_code?: string | undefined;
  /** Kept if the message has one, as is the provider's id: the first one stays. */
  readonly provider?: MessageProviderName | undefined;
  readonly provider_message_id?: string | undefined;
  /** The time of its latest event, if there is one. */
  readonly last_event_at?: string | undefined;
  readonly reached?: StateSet | undefined;
}

/**
 * Updates the rows of locked messages. `look_at` is the time of upkeep's next check: a message that is queued, or whose status
 * does not change, keeps it; one that Twilio has accepted is looked up after two minutes; others are not checked, since Meta
 * has no such API.
 */
export async function updateMessages(db: Db, updates: readonly MessageUpdate[]): Promise<void> {
  if (updates.length === 0) return;
  await execute(db, {
    name: 'update_messages',
    text: `UPDATE chat_messages AS message SET
             status              = coalesce(input.status, message.status),
             error               = CASE WHEN input.status IS NULL THEN message.error ELSE input.error END,
             error_code          = CASE WHEN input.status IS NULL THEN message.error_code ELSE input.error_code END,
             provider            = coalesce(message.provider, input.provider),
             provider_message_id = coalesce(message.provider_message_id, input.provider_message_id),
             last_event_at       = greatest(message.last_event_at, input.last_event_at),
             reached             = coalesce(input.reached, message.reached),
             look_at             = CASE WHEN coalesce(input.status, 'queued') = 'queued' THEN message.look_at
                                        WHEN input.status = 'sent' AND input.provider = 'twilio' THEN now() + interval '2 minutes' END
           FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[],
                       $8::smallint[])
             AS input(id, status, error, error_code, provider, provider_message_id, last_event_at, reached)
           WHERE message.id = input.id AND message.id = ANY ($1)`,
    values: [
      ...columns(updates, 'id', 'status', 'error', 'error_code'),
      ...columns(updates, 'provider', 'provider_message_id', 'last_event_at', 'reached'),
    ],
  });
}

/**
 * Gives a locked message another time, at most 30 days ahead by the database's clock.
 * @returns the times as they are stored; undefined if the new one is not allowed
 */
export async function moveMessage(db: Db, id: string, scheduledAt: string): Promise<Rescheduled | undefined> {
  return queryRow(db, {
    name: 'move_message',
    text: `UPDATE chat_messages AS message
           SET scheduled_at = $2, schedule_version = schedule_version + 1, workflow_id = NULL,
               look_at = $2::timestamptz + interval '10 minutes'
           FROM (SELECT scheduled_at AS previous FROM chat_messages WHERE id = $1) AS before
           WHERE id = $1 AND ${timeProblem('$2::timestamptz')} IS NULL RETURNING message.scheduled_at, before.previous`,
    values: [id, scheduledAt],
  });
}

/**
 * Assigns the open messages of a number or SMS sender to its new connection: those that wait, and those of which Twilio or Meta
 * may still report. Messages with an ambiguous attempt are left out, since the new connection may have another account. Of those
 * in `sent`, whose number has no limit, only messages accepted in 33 days are read: scheduled up to 30 days ahead, and sent in the
 * last 72 hours. Those that were rescheduled or held for longer keep the former number.
 */
export async function reassignMessages(
  db: Db,
  { orgId, channel }: MessageScope,
  { id, from, provider }: { readonly id: string; readonly from: string; readonly provider: MessageProviderName },
): Promise<void> {
  const ids = await queryColumn<string>(
    db,
    `SELECT id FROM chat_messages
     WHERE org_id = $1 AND channel = $2 AND "from" = $3 AND number_id <> $4
       AND (status IN ('queued', 'scheduled')
            OR status = 'sent' AND created_at > now() - interval '33 days'
               AND provider = $5 AND last_event_at > now() - interval '72 hours')
     ORDER BY id FOR UPDATE`,
    [orgId, channel, from, id, provider],
  );
  // A second statement: it sees the attempts of claims for which the first one has waited.
  await execute(
    db,
    `UPDATE chat_messages AS message SET number_id = $2
     WHERE id = ANY ($1)
       AND NOT EXISTS (SELECT FROM attempts WHERE message_id = message.id AND (outcome IS NULL OR outcome = 'unknown'))`,
    [ids, id],
  );
}
