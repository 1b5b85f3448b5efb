import type { MessageChannel } from '../../domain/messages/message.ts';
import { IS_OPEN } from '../emails/recipients.ts';
import { backOff } from '../postgres/back-off.ts';
import { type Db, execute, queryOneRow, queryRows } from '../postgres/pool.ts';
import { columns } from '../postgres/columns.ts';

/** A request to Temporal about one email. */
export interface EmailRow {
  id: string;
  /** `leave` starts a workflow for an email that must not share one: the rest of one, or one that was refused because of others. */
  action: 'start' | 'leave' | 'reschedule' | 'cancel';
  message_id: string;
  tries: number;
  org_id: string;
  batch_id: string | null;
  /** The first recipient as given, and the number of further recipients. */
  first_to: string;
  more_to: number;
  due_at: string | null;
  /** True if it is due later than now. */
  is_later: boolean;
  /** True if it has been due for more than two seconds. */
  is_late: boolean;
  version: number;
  /** The workflow that delivers it. */
  workflow_id: string;
  /** True while something is left to deliver: false once the email is canceled or has ended. */
  is_open: boolean;
  /** The span of its request. Set when tracing is enabled. */
  traceparent: string | null;
}

/** Messages of one channel that share the workflow `message_id`, due at one instant. */
export interface GroupRow {
  id: string;
  action: 'group';
  message_id: string;
  tries: number;
  members: { id: string; version: number }[];
  /** Null if the members differ. */
  org_id: string | null;
  batch_id: string | null;
  /** True if all members belong to batches. */
  is_bulk: boolean;
  /** True for single messages that have waited. They leave the workers of `email-bursts` or `chat-bursts` to those that have not. */
  is_late: boolean;
  due_at: string | null;
  /** The channel of its members. */
  channel: 'email' | MessageChannel;
  /** The spans of the members' requests, at most MAX_LINKS. */
  traceparents: string[];
}

/** A maintenance task to run immediately. */
export interface MaintenanceRow {
  id: string;
  /** The name of this action in the rows of all versions. */
  action: 'chore';
  /** The task's name. */
  message_id: string;
  tries: number;
  /** Further rows of the same request. */
  more_ids: string[];
}

/** A request to Temporal about one chat-app message or SMS. */
export interface MessageRow {
  id: string;
  /** `message_again` starts a workflow for a message that may have had one before, or that has left its group. */
  action: 'message' | 'message_again' | 'message_reschedule' | 'message_cancel';
  message_id: string;
  tries: number;
  channel: MessageChannel;
  org_id: string;
  /** Messages belong to no batch. */
  batch_id: null;
  to: string;
  type: string;
  due_at: string | null;
  /** As those of an email. */
  is_later: boolean;
  is_late: boolean;
  version: number;
  workflow_id: string;
  /** True while it is to be delivered. */
  is_open: boolean;
  traceparent: string | null;
}

/** The kinds of rows in the outbox, including locked and deferred ones. */
export interface PendingKinds {
  maintenance: boolean;
  messages: boolean;
  groups: boolean;
  emails: boolean;
}

/** A request about one message of any channel. */
export type DeliveryRow = EmailRow | MessageRow;

export type OutboxRow = DeliveryRow | GroupRow | MaintenanceRow;

/** The tables of messages: that of emails, and that of chat-app messages and SMS. */
export type MessageTable = 'emails' | 'chat_messages';

/** SQL: actions about chat-app messages and SMS. Versions before SMS wrote the first two. */
export const MESSAGE_ACTIONS = `('chat', 'chat_again', 'message', 'message_again', 'message_reschedule', 'message_cancel')`;

const DUE_MESSAGE = `action IN ${MESSAGE_ACTIONS} AND (retry_at IS NULL OR retry_at <= now())`;

/** Returns the kinds of rows that the outbox contains: mostly none, or one. */
export async function findPendingKinds(db: Db): Promise<PendingKinds> {
  return queryOneRow(db, {
    name: 'find_pending_kinds',
    text: `SELECT EXISTS (SELECT FROM outbox WHERE action = 'chore') AS maintenance,
                  EXISTS (SELECT FROM outbox WHERE action IN ${MESSAGE_ACTIONS}) AS messages,
                  EXISTS (SELECT FROM outbox WHERE action = 'group') AS groups,
                  EXISTS (SELECT FROM outbox WHERE action IN ('start', 'leave', 'reschedule', 'cancel')) AS emails`,
  });
}

/** SQL: the due time of a message of an outbox row. */
const DUE = (message: string): string => `${message}.scheduled_at AS due_at,
         coalesce(${message}.scheduled_at > now(), false) AS is_later,
         coalesce(${message}.scheduled_at, ${message}.created_at) < now() - interval '2 seconds' AS is_late`;

/** Rows about emails, with the email's current state, not that of when the row was written. */
const EMAIL_ROWS = `
  SELECT outbox.id, outbox.action, outbox.message_id, outbox.tries, email.org_id, email.batch_id,
         email."to" ->> 0 AS first_to, jsonb_array_length(email."to") - 1 AS more_to,
         ${DUE('email')}, email.schedule_version AS version, email.workflow_id,
         ${IS_OPEN('email')} AS is_open, outbox.traceparent
  FROM outbox JOIN emails AS email ON email.id = outbox.message_id
  WHERE outbox.action IN ('start', 'leave', 'reschedule', 'cancel') AND (outbox.retry_at IS NULL OR outbox.retry_at <= now())`;

/** Locks the oldest due rows about emails that no other relay has locked. */
export function lockEmailRows(db: Db, limit: number): Promise<EmailRow[]> {
  return queryRows(db, {
    name: 'lock_email_rows',
    text: `${EMAIL_ROWS} ORDER BY outbox.id LIMIT $1 FOR UPDATE OF outbox SKIP LOCKED`,
    values: [limit],
  });
}

/** Locks single emails that are due, among the latest `limit` rows after `afterId`. */
export function lockLateSingles(db: Db, afterId: string, limit: number): Promise<EmailRow[]> {
  return queryRows(db, {
    name: 'lock_late_singles',
    text: `${EMAIL_ROWS} AND email.batch_id IS NULL AND outbox.action = 'start' AND coalesce(email.scheduled_at <= now(), true)
             AND outbox.id = ANY (ARRAY(SELECT id FROM outbox WHERE id > $1 ORDER BY id DESC LIMIT $2))
           ORDER BY outbox.id FOR UPDATE OF outbox SKIP LOCKED`,
    values: [afterId, limit],
  });
}

/** Locks the oldest groups that no other relay has locked, those of single emails before those of batches. */
export function lockGroups(db: Db, limit: number): Promise<GroupRow[]> {
  return queryRows(db, {
    name: 'lock_groups',
    text: `SELECT id, action, message_id, tries, group_of -> 'members' AS members, group_of ->> 'org_id' AS org_id,
                  group_of ->> 'batch_id' AS batch_id, coalesce(group_of ->> 'channel', 'email') AS channel, (group_of ->> 'bulk')::boolean AS is_bulk, coalesce((group_of ->> 'late')::boolean, false) AS is_late,
                  (group_of ->> 'due_at')::timestamptz AS due_at,
                  ARRAY(SELECT jsonb_array_elements_text(group_of -> 'traceparents')) AS traceparents
           FROM outbox WHERE action = 'group' AND (retry_at IS NULL OR retry_at <= now())
           ORDER BY group_of ->> 'bulk', group_of ->> 'late' NULLS FIRST, id LIMIT $1 FOR UPDATE SKIP LOCKED`,
    values: [limit],
  });
}

/** Locks maintenance tasks to run. Rows about the same task are merged. */
export function lockMaintenance(db: Db, limit: number): Promise<MaintenanceRow[]> {
  return queryRows(db, {
    name: 'lock_maintenance',
    text: `WITH locked AS MATERIALIZED (
             SELECT id, message_id, tries FROM outbox
             WHERE action = 'chore' AND (retry_at IS NULL OR retry_at <= now())
             ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED
           )
           SELECT min(id) AS id, 'chore' AS action, message_id, max(tries) AS tries,
                  (array_agg(id::text ORDER BY id))[2:] AS more_ids
           FROM locked GROUP BY message_id`,
    values: [limit],
  });
}

/** Organizations take turns among this many of the oldest and as many of the latest rows. */
const MAX_TURN_CANDIDATES = 500;

/**
 * Locks rows about chat-app messages and SMS that no other relay has locked, the oldest of each organization first. Organizations
 * are drawn by lot: with one token at a time, the one with the oldest row would always be first.
 */
export async function lockMessageRows(db: Db, limit: number): Promise<MessageRow[]> {
  if (limit === 0) return [];
  return queryRows(db, {
    name: 'lock_message_rows',
    text: `WITH pending AS (
             (SELECT id, message_id FROM outbox WHERE ${DUE_MESSAGE} ORDER BY id LIMIT $2)
             UNION
             (SELECT id, message_id FROM outbox WHERE ${DUE_MESSAGE} ORDER BY id DESC LIMIT $2)
           ), turns AS (
             SELECT pending.id, row_number() OVER (PARTITION BY message.org_id ORDER BY pending.id) AS turn
             FROM pending CROSS JOIN LATERAL (SELECT org_id FROM chat_messages WHERE id = message_id OFFSET 0) AS message
           )
           SELECT outbox.id, replace(outbox.action, 'chat', 'message') AS action, outbox.message_id, outbox.tries,
                  message.channel, message.org_id, NULL AS batch_id, message."to", message.type, ${DUE('message')},
                  message.schedule_version AS version, coalesce(message.workflow_id, message.id) AS workflow_id, message.status IN ('queued', 'scheduled') AS is_open, outbox.traceparent
           FROM outbox CROSS JOIN LATERAL (SELECT * FROM chat_messages WHERE id = outbox.message_id OFFSET 0) AS message
           WHERE outbox.id = ANY (ARRAY(SELECT id FROM turns ORDER BY turn, random() LIMIT $1))
           ORDER BY outbox.id FOR UPDATE OF outbox SKIP LOCKED`,
    values: [limit, MAX_TURN_CANDIDATES],
  });
}

/** A message to group: its outbox row and the version that was read with it. */
export interface GroupMember {
  /** Null for a message without an outbox row. */
  readonly outboxId: string | null;
  readonly id: string;
  readonly version: number;
  readonly traceparent?: string | null;
}

const MAX_LINKS = 50;

/** Adds a group of new members of a batch, which are due immediately, to the outbox. */
export async function insertGroup(
  db: Db,
  group: string,
  {
    members,
    ...shared
  }: Pick<GroupRow, 'org_id' | 'batch_id' | 'traceparents'> & { readonly members: readonly string[] },
): Promise<void> {
  const groupOf = { ...shared, members: members.map((id) => ({ id, version: 0 })), bulk: true, due_at: null };
  await execute(db, {
    name: 'insert_group',
    text: `INSERT INTO outbox (message_id, action, group_of) VALUES ($1, 'group', $2)`,
    values: [group, JSON.stringify(groupOf)],
  });
}

/** Messages that are to share a workflow. */
export interface NewGroup {
  /** The workflow's id. */
  readonly id: string;
  readonly members: readonly GroupMember[];
  readonly isLate: boolean;
}

/**
 * Replaces the rows of many messages by one for each group and records on each message that its group's workflow delivers it. A
 * message that was rescheduled, canceled or ended since its row was read keeps its row. The messages of all groups are locked in the
 * order of their ids, as a batch that is canceled locks them. Rows are found through arrays: a join, planned while the outbox was empty,
 * compared each with each, and took up to 8 s for 1,700.
 */
export async function groupOutboxRows(
  db: Db,
  groups: readonly NewGroup[],
  table: MessageTable = 'emails',
): Promise<void> {
  const members = groups.flatMap(({ id: group, isLate, members }) =>
    members.map((member) => ({ ...member, group, isLate })),
  );
  await execute(db, {
    name: `group_outbox_rows_of_${table}`,
    text: `WITH members AS MATERIALIZED (
             SELECT input.*, message.org_id, message.batch_id, message.channel, message.scheduled_at
             FROM (
               SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::integer[], $5::text[], $6::boolean[])
                 AS input(workflow_id, outbox_id, id, version, traceparent, is_late)
               ORDER BY id COLLATE "C"
             ) AS input CROSS JOIN LATERAL (
               SELECT org_id, ${table === 'emails' ? `batch_id, 'email' AS channel` : `NULL AS batch_id, channel`},
                      scheduled_at, schedule_version, status FROM ${table} WHERE id = input.id FOR UPDATE
             ) AS message
             WHERE message.schedule_version = input.version AND message.status IN ('queued', 'scheduled')
           ), assigned AS (
             UPDATE ${table} AS message SET workflow_id = members.workflow_id
             FROM members WHERE message.id = members.id AND message.id = ANY (ARRAY(SELECT id FROM members))
           ), deleted AS (
             DELETE FROM outbox WHERE id = ANY (ARRAY(SELECT outbox_id FROM members))
           )
           INSERT INTO outbox (message_id, action, group_of)
           SELECT workflow_id, 'group', jsonb_build_object(
             'members', jsonb_agg(jsonb_build_object('id', id, 'version', version) ORDER BY id),
             'org_id', CASE WHEN count(DISTINCT org_id) = 1 THEN min(org_id) END,
             'batch_id', CASE WHEN count(DISTINCT batch_id) = 1 AND bool_and(batch_id IS NOT NULL) THEN min(batch_id) END,
             'channel', min(channel),
             'bulk', bool_and(batch_id IS NOT NULL),
             'late', bool_and(is_late),
             'due_at', min(scheduled_at),
             'traceparents', coalesce((array_agg(DISTINCT traceparent) FILTER (WHERE traceparent IS NOT NULL))[:$7], '{}'))
           FROM members GROUP BY workflow_id ORDER BY min(outbox_id)`,
    values: [...columns(members, 'group', 'outboxId', 'id', 'version', 'traceparent', 'isLate'), MAX_LINKS],
  });
}

/**
 * Detaches messages from their group: after `waitMs` each is started again, by its own workflow if the relay has one for it, with others
 * that wait if not. Messages that the group no longer delivers do not change.
 * @param messages `alone` if the provider refused it because of the other emails of the call
 */
export async function detachFromGroup(
  db: Db,
  group: string,
  messages: readonly { readonly id: string; readonly waitMs: number; readonly alone: boolean }[],
  table: MessageTable = 'emails',
): Promise<void> {
  if (messages.length === 0) return;
  const isEmail = table === 'emails';
  await execute(db, {
    name: `detach_from_group_of_${table}`,
    text: `WITH detached AS MATERIALIZED (
             SELECT input.*, message.status IN ('queued', 'scheduled') AS is_whole
             FROM (
               SELECT * FROM unnest($2::text[], $3::float8[], $4::boolean[]) AS input(id, wait_ms, alone) ORDER BY id COLLATE "C"
             ) AS input CROSS JOIN LATERAL (
               SELECT workflow_id, status FROM ${table} WHERE id = input.id FOR UPDATE
             ) AS message
             WHERE message.workflow_id = $1
           ), assigned AS (
             UPDATE ${table} SET workflow_id = ${isEmail ? 'id' : 'NULL'} WHERE id = ANY (ARRAY(SELECT id FROM detached))
           )
           INSERT INTO outbox (message_id, action, retry_at)
           SELECT id, ${isEmail ? `CASE WHEN alone OR NOT is_whole THEN 'leave' ELSE 'start' END` : `'message_again'`},
                  now() + wait_ms * interval '1 millisecond' FROM detached`,
    values: [group, ...columns(messages, 'id', 'waitMs', 'alone')],
  });
}

export async function deleteOutbox(db: Db, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await execute(db, { name: 'delete_outbox', text: `DELETE FROM outbox WHERE id = ANY ($1)`, values: [ids] });
}

/** Deletes rows by which processes of an earlier version woke the workflows of webhook endpoints and domains. */
export async function deleteEarlierRows(db: Db): Promise<void> {
  await execute(db, `DELETE FROM outbox WHERE action IN ('webhook', 'domain')`);
}

/** Defers rows that Temporal refused: by a second, doubling to ten minutes, so that they do not block other rows. */
export async function deferOutbox(db: Db, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await execute(
    db,
    `UPDATE outbox SET tries = tries + 1, retry_at = ${backOff(600, 'second')}
     WHERE id = ANY ($1)`,
    [ids],
  );
}

/**
 * Adds rows to the outbox, in the transaction of the change.
 * @param traceparent the span of their request, which their delivery continues
 */
export async function insertOutbox(
  db: Db,
  action: EmailRow['action'] | MessageRow['action'],
  messageIds: readonly string[],
  traceparent?: string,
): Promise<void> {
  if (messageIds.length === 0) return;
  await execute(db, {
    name: 'insert_outbox',
    text: `INSERT INTO outbox (message_id, action, traceparent) SELECT id, $1, $3 FROM unnest($2::text[]) AS message(id)`,
    values: [action, messageIds, traceparent],
  });
}
