import type { EmailProviderName } from '../../domain/email/email.ts';
import { SENDERS } from '../messages/delivery.ts';
import { MESSAGE_ACTIONS } from '../outbox/outbox.ts';
import { type Db, queryColumn, queryOneValue } from '../postgres/pool.ts';
import { insertAmbiguousAttempts, POSSIBLE_SEND_FROM } from './forgotten.ts';

/** The detail of the attempts that represent possible sends between a backup and its restore. */
const DETAIL = 'It was open when the backup was made, and may have been sent since.';

/** Returns the names of connected processes that send messages. */
export function findSenders(db: Db): Promise<string[]> {
  return queryColumn(
    db,
    `SELECT DISTINCT application_name AS name FROM pg_stat_activity
     WHERE datname = current_database() AND application_name IN ('sendwright api', 'sendwright worker') ORDER BY name`,
  );
}

/**
 * A restore raises `schedule_version` by this number, which is more than the reschedules of an email since the backup. A
 * workflow that is still open in Temporal then uses the restored time, not one of a later signal.
 */
const VERSIONS_SINCE_BACKUP = 1_000_000;

/**
 * Makes every open email ambiguous, so that it is looked up at its provider before it is sent, and delivered by a new workflow:
 * its own for single emails and for copies, otherwise one that the relay chooses. A scheduled email with a workflow of its own
 * is rescheduled to its time in the backup, since that workflow may still run with a later time.
 * @param provider the provider that is asked
 * @returns the number of emails
 */
export async function markEmailsAmbiguous(db: Db, provider: EmailProviderName): Promise<number> {
  return queryOneValue(
    db,
    `WITH open AS MATERIALIZED (
       SELECT waiting.* FROM organizations CROSS JOIN LATERAL (
         SELECT id, batch_id, status, schedule_version FROM emails
         WHERE org_id = organizations.id AND status IN ('queued', 'scheduled')
       ) AS waiting
       UNION
       SELECT id, batch_id, status, schedule_version FROM emails
       WHERE id IN (SELECT email_id FROM email_recipients WHERE status = 'queued')
     ), ambiguous AS (
       ${insertAmbiguousAttempts('$1', 'now()', '$2')}
     ), assigned AS (
       UPDATE emails
       SET workflow_id = emails.id, look_at = NULL,
           schedule_version = emails.schedule_version + CASE WHEN open.status = 'scheduled' THEN $3::integer ELSE 0 END
       FROM open WHERE emails.id = open.id
     ), superseded AS (
       DELETE FROM outbox WHERE action IN ('start', 'leave', 'group', 'reschedule', 'cancel')
     ), started AS (
       INSERT INTO outbox (message_id, action)
       SELECT id, CASE WHEN status = 'scheduled' AND (batch_id IS NULL OR schedule_version % $3::integer > 0) THEN 'reschedule'
                       WHEN batch_id IS NOT NULL AND status IN ('queued', 'scheduled') THEN 'start'
                       ELSE 'leave' END
       FROM open ORDER BY id
     )
     SELECT count(*)::int AS count FROM open`,
    [provider, DETAIL, VERSIONS_SINCE_BACKUP],
  );
}

/**
 * The same for chat-app messages and SMS; their numbers determine the provider.
 * Meta cannot be asked, but its report may arrive within a minute.
 * @returns the number of messages
 */
export async function markMessagesAmbiguous(db: Db): Promise<number> {
  return queryOneValue(
    db,
    `WITH open AS MATERIALIZED (
       SELECT message.id, message.status, message.created_at, number.provider
       FROM organizations CROSS JOIN LATERAL (
         SELECT id, status, created_at, number_id FROM chat_messages
         WHERE org_id = organizations.id AND status IN ('queued', 'scheduled')
       ) AS message LEFT JOIN ${SENDERS} AS number ON number.id = message.number_id
     ), ambiguous AS (
       ${insertAmbiguousAttempts('provider', POSSIBLE_SEND_FROM, '$1', 'provider IS NOT NULL')}
     ), moved AS (
       UPDATE chat_messages
       SET schedule_version = schedule_version + CASE open.status WHEN 'scheduled' THEN $2::integer ELSE 0 END, workflow_id = NULL
       FROM open WHERE chat_messages.id = open.id AND (open.status = 'scheduled' OR workflow_id IS NOT NULL)
     ), superseded AS (
       DELETE FROM outbox WHERE action IN ${MESSAGE_ACTIONS}
     ), started AS (
       INSERT INTO outbox (message_id, action)
       SELECT id, CASE status WHEN 'scheduled' THEN 'message_reschedule' ELSE 'message_again' END FROM open ORDER BY id
     )
     SELECT count(*)::int AS count FROM open`,
    [DETAIL, VERSIONS_SINCE_BACKUP],
  );
}
