import type { EmailProviderName } from '../../domain/email/email.ts';
import { HAS_COPIES_LEFT } from '../emails/recipients.ts';
import { SENDERS } from '../messages/delivery.ts';
import { type Db, execute, queryOneValue, queryValue } from '../postgres/pool.ts';

/**
 * Returns SQL that inserts an ambiguous attempt for each row of `open`. Its call is the message's id, which matches any call. "Not found"
 * is confirmed a minute after the first such answer; the insertion counts as the first, since everything was sent before it.
 * @param where selects the rows
 */
export function insertAmbiguousAttempts(provider: string, startedAt: string, detail: string, where = 'true'): string {
  return `INSERT INTO attempts (message_id, n, call, provider, started_at, ended_at, outcome, detail, denied_at)
    SELECT id, 1 + coalesce((SELECT max(n) FROM attempts WHERE message_id = id), 0), id, ${provider}, ${startedAt}, now(),
           'unknown', ${detail}, now()
    FROM open WHERE ${where}
    ON CONFLICT DO NOTHING`;
}

/** SQL: when the attempts of a chat-app message begin that represent possible sends. Twilio's list is read from the time of acceptance. */
export const POSSIBLE_SEND_FROM = `CASE provider WHEN 'twilio' THEN created_at ELSE now() END`;

/** The detail of the attempts that represent forgotten ones. */
export const FORGOTTEN = 'It may have been sent by a call that Postgres has forgotten.';

/**
 * Returns SQL that is true unless the last attempt on record leads to a look-up, or to an answer that is to be applied.
 * @param hasCopiesLeft SQL that is true while copies of the message are to be sent
 */
function mayHaveForgotten(message: string, hasCopiesLeft: string): string {
  return `NOT EXISTS (
    SELECT FROM (SELECT outcome, changes FROM attempts WHERE message_id = ${message}.id ORDER BY n DESC LIMIT 1) AS last
    WHERE outcome IS NULL OR outcome = 'unknown' OR changes IS NOT NULL
       OR outcome IN ('sent', 'refused') AND NOT ${hasCopiesLeft})`;
}

export const EMAIL_MAY_HAVE_FORGOTTEN = (email: string): string => mayHaveForgotten(email, HAS_COPIES_LEFT(email));
export const MESSAGE_MAY_HAVE_FORGOTTEN = (message: string): string => mayHaveForgotten(message, 'false');

/**
 * The timeline on which the server writes: the identifier of its cluster, and a number that grows with each fail-over and restore. It is
 * that of the log, since the last checkpoint may still be of the timeline before.
 */
export function readTimeline(db: Db): Promise<string> {
  return queryOneValue(
    db,
    `SELECT system_identifier || ' ' || left(pg_walfile_name(pg_current_wal_lsn()), 8) FROM pg_control_system()`,
  );
}

/**
 * Records the timeline that workers use now. Others wait until the transaction of `db` ends.
 * @returns true if they used another one before
 */
export async function replaceTimeline(db: Db, timeline: string): Promise<boolean> {
  await execute(db, `INSERT INTO postgres_timeline (timeline) VALUES ($1) ON CONFLICT DO NOTHING`, [timeline]);
  const before = await queryValue<string>(db, 'SELECT timeline FROM postgres_timeline FOR UPDATE');
  if (before === timeline) return false;
  await execute(db, 'UPDATE postgres_timeline SET timeline = $1, seen_at = now()', [timeline]);
  return true;
}

/** A replica that lags by more than this is not what a fail-over should choose. It also bounds how many look-ups follow. */
const FORGETTABLE = `interval '15 minutes'`;

/** SQL: true for a message that was due, or has an attempt, in the time of which a fail-over may have forgotten something. */
const MAY_HAVE_BEEN_SENT = `(scheduled_at IS NULL OR scheduled_at <= now())
  AND (coalesce(scheduled_at, created_at) > now() - ${FORGETTABLE}
       OR EXISTS (SELECT FROM attempts WHERE message_id = message.id AND started_at > now() - ${FORGETTABLE}))`;

/**
 * Makes open emails that may have been sent in the last minutes ambiguous, so that they are looked up before they are sent.
 * @param provider the provider that is asked about emails without an attempt
 * @returns the number of emails
 */
export async function markRecentEmails(db: Db, provider: EmailProviderName): Promise<number> {
  return queryOneValue(
    db,
    `WITH open AS MATERIALIZED (
       SELECT recent.id FROM organizations CROSS JOIN LATERAL (
         SELECT id FROM emails AS message
         WHERE org_id = organizations.id AND status IN ('queued', 'scheduled') AND ${MAY_HAVE_BEEN_SENT}
           AND ${EMAIL_MAY_HAVE_FORGOTTEN('message')}
       ) AS recent
       UNION
       SELECT id FROM emails AS message
       WHERE id IN (SELECT email_id FROM email_recipients WHERE status = 'queued') AND ${MAY_HAVE_BEEN_SENT}
         AND ${EMAIL_MAY_HAVE_FORGOTTEN('message')}
     ), ambiguous AS (${insertAmbiguousAttempts('$1', 'now()', '$2')})
     SELECT count(*)::int FROM open`,
    [provider, FORGOTTEN],
  );
}

/** The same for chat-app messages and SMS of numbers whose provider can be asked. @returns the number of messages */
export async function markRecentMessages(db: Db, providers: readonly string[]): Promise<number> {
  return queryOneValue(
    db,
    `WITH open AS MATERIALIZED (
       SELECT recent.id, recent.created_at, number.provider FROM organizations CROSS JOIN LATERAL (
         SELECT id, created_at, number_id FROM chat_messages AS message
         WHERE org_id = organizations.id AND status IN ('queued', 'scheduled') AND ${MAY_HAVE_BEEN_SENT}
           AND ${MESSAGE_MAY_HAVE_FORGOTTEN('message')}
       ) AS recent JOIN ${SENDERS} AS number ON number.id = recent.number_id
       WHERE number.provider = ANY ($1)
     ), ambiguous AS (${insertAmbiguousAttempts('provider', POSSIBLE_SEND_FROM, '$2')})
     SELECT count(*)::int FROM open`,
    [providers, FORGOTTEN],
  );
}
