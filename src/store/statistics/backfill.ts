import type { BounceReason, EmailStatus } from '../../domain/email/email.ts';
import type { MessageChannel, MessageStatus } from '../../domain/messages/message.ts';
import type { StateSet, StatisticsChannel } from '../../domain/statistics.ts';
import type { ChangingEmail } from '../emails/changes.ts';
import type { ChangingMessage } from '../messages/changes.ts';
import type { CountedMessage } from './additions.ts';
import { columns } from '../postgres/columns.ts';
import { type Db, execute, queryColumn, queryRow, queryRows } from '../postgres/pool.ts';

/** The progress of a channel's backfill. */
export interface Backfill {
  readonly channel: StatisticsChannel;
  readonly last_id: string;
  readonly end_id: string;
}

/** Locks the backfill of a channel until the end of the transaction; undefined if it is complete. */
export function lockBackfill(db: Db, channel: StatisticsChannel): Promise<Backfill | undefined> {
  return queryRow(db, `SELECT channel, last_id, end_id FROM stat_backfills WHERE channel = $1 FOR UPDATE`, [channel]);
}

/** Stores the last id that a backfill has counted. */
export async function recordBackfill(db: Db, channel: StatisticsChannel, lastId: string): Promise<void> {
  await execute(db, `UPDATE stat_backfills SET last_id = $2 WHERE channel = $1`, [channel, lastId]);
}

/** The suffix of `end_id` in a second pass. It sorts after all characters of ids, so that the bound excludes no message. */
const SECOND_PASS = '~';

/** Ends a pass of a backfill. The first one is followed by a second one over the messages after `secondFrom`. */
export async function endPass(db: Db, { channel, end_id }: Backfill, secondFrom: string): Promise<void> {
  if (end_id.endsWith(SECOND_PASS)) await execute(db, `DELETE FROM stat_backfills WHERE channel = $1`, [channel]);
  else
    await execute(db, `UPDATE stat_backfills SET last_id = $2, end_id = $3 WHERE channel = $1`, [
      channel,
      secondFrom,
      end_id + SECOND_PASS,
    ]);
}

/** A message as the backfill counts it, with all statuses of its timeline. */
interface Timeline<Status> extends CountedMessage {
  readonly id: string;
  readonly statuses: readonly Status[];
  /** In Postgres's notation; null if it was not sent. */
  readonly sent_at: string | null;
  readonly delivered_at: string | null;
}
export type EmailTimeline = Timeline<EmailStatus> &
  Pick<ChangingEmail, 'batch_id' | 'from' | 'bounced_for'> & { readonly bounce_reason: BounceReason | null };
export type MessageTimeline = Timeline<MessageStatus> & Pick<ChangingMessage, 'channel'>;

/**
 * SQL of a message's statuses (its current one and those of its timeline) and of the times at which it was first sent and delivered.
 * Ignores opens and clicks by machines, and events that are not statuses.
 */
const timelineOf = (kind: string, events: string, key: string) => `
  SELECT array_agg(DISTINCT split_part(type, '.', 2)) FILTER (WHERE split_part(type, '.', 2) NOT IN ('rescheduled', 'unsubscribed'))
           || ${kind}.status AS statuses,
         min(created_at) FILTER (WHERE split_part(type, '.', 2) = 'sent')::text AS sent_at,
         min(created_at) FILTER (WHERE split_part(type, '.', 2) = 'delivered')::text AS delivered_at
  FROM ${events} WHERE ${key} = ${kind}.id AND detail->'machine' IS NULL`;

/** Locks the next emails of a backfill in the order of their ids. */
export function lockNextEmails(db: Db, { last_id, end_id }: Backfill, limit: number): Promise<string[]> {
  return queryColumn(db, `SELECT id FROM emails WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3 FOR UPDATE`, [
    last_id,
    end_id,
    limit,
  ]);
}

/** Reads locked emails. It must see what the last holder of the locks wrote, so it has a later snapshot than `lockNextEmails`. */
export function readEmailTimelines(db: Db, ids: readonly string[]): Promise<EmailTimeline[]> {
  return queryRows(
    db,
    `SELECT email.id, org_id, batch_id, created_at::text AS accepted_at, coalesce(scheduled_at, created_at)::text AS due_at,
            "from", key_id, nullif(tags, '[]')::text AS tags, reached, bounced_for,
            -- If a later report moved an email on from its bounce, 0.1.0 kept the reason only with the recipient.
            coalesce(
              bounce_reason,
              (SELECT bounce_reason FROM email_recipients WHERE email_id = email.id AND bounce_reason IS NOT NULL LIMIT 1),
              (SELECT detail->>'bounce_reason' FROM email_events WHERE email_id = email.id AND type = 'email.bounced' LIMIT 1)
            ) AS bounce_reason, timeline.*
     FROM emails AS email CROSS JOIN LATERAL (${timelineOf('email', 'email_events', 'email_id')} OFFSET 0) AS timeline
     WHERE email.id = ANY ($1) ORDER BY email.id`,
    [ids],
  );
}

/** As `lockNextEmails`, of chat-app messages or SMS. */
export function lockNextMessages(
  db: Db,
  channel: MessageChannel,
  { last_id, end_id }: Backfill,
  limit: number,
): Promise<string[]> {
  return queryColumn(
    db,
    `SELECT id FROM chat_messages WHERE channel = $1 AND id > $2 AND id < $3 ORDER BY id LIMIT $4 FOR UPDATE`,
    [channel, last_id, end_id, limit],
  );
}

/** As `readEmailTimelines`, of chat-app messages or SMS. */
export function readMessageTimelines(db: Db, ids: readonly string[]): Promise<MessageTimeline[]> {
  return queryRows(
    db,
    `SELECT message.id, org_id, channel, created_at::text AS accepted_at, coalesce(scheduled_at, created_at)::text AS due_at,
            key_id, nullif(tags, '[]')::text AS tags, reached, timeline.*
     FROM chat_messages AS message
          CROSS JOIN LATERAL (${timelineOf('message', 'chat_events', 'message_id')} OFFSET 0) AS timeline
     WHERE message.id = ANY ($1) ORDER BY message.id`,
    [ids],
  );
}

/** A message that the backfill has counted. */
interface StoredProgress {
  readonly id: string;
  readonly reached: StateSet;
  readonly bounced_for: BounceReason | null;
}

export async function storeEmailProgress(db: Db, emails: readonly StoredProgress[]): Promise<void> {
  if (emails.length === 0) return;
  await execute(
    db,
    `UPDATE emails AS email SET reached = input.reached, bounced_for = input.bounced_for
     FROM unnest($1::text[], $2::smallint[], $3::text[]) AS input(id, reached, bounced_for)
     WHERE email.id = input.id AND email.id = ANY ($1)`,
    columns(emails, 'id', 'reached', 'bounced_for'),
  );
}

export async function storeMessageProgress(db: Db, messages: readonly StoredProgress[]): Promise<void> {
  if (messages.length === 0) return;
  await execute(
    db,
    `UPDATE chat_messages AS message SET reached = input.reached
     FROM unnest($1::text[], $2::smallint[]) AS input(id, reached)
     WHERE message.id = input.id AND message.id = ANY ($1)`,
    columns(messages, 'id', 'reached'),
  );
}
