import type { Attachment } from '../../domain/email/attachments.ts';
import type { EmailStatus } from '../../domain/email/email.ts';
import { ATTACHMENTS_OF_EMAIL } from './attachments.ts';
import type { EmailChangeInput } from './changes.ts';
import type { StoredContent } from './contents.ts';
import type { Email } from './emails.ts';
import { type CopyEnding, HAS_COPIES_LEFT } from './recipients.ts';
import { type Db, execute, queryRows } from '../postgres/pool.ts';
import { COPIES } from '../limits/quota.ts';
import { SUSPENDED_FOR } from '../accounts/suspension.ts';
import { columns } from '../postgres/columns.ts';

/** An email locked for delivery, with its stored content. */
export interface LockedEmail
  extends
    StoredContent,
    Pick<Email, 'from' | 'to' | 'cc' | 'bcc' | 'reply_to' | 'subject' | 'marketing' | 'status' | 'scheduled_at'> {
  /** Bytes of one copy's bodies in UTF-8. Larger bodies than `SMALL_BODY_BYTES` are null here; see `readBodies`. */
  body_bytes: number;
  /** Maximum number of copies; 1 unless it is a marketing email. */
  copies: number;
  schedule_version: number;
  provider: string | null;
  attachments: Attachment[];
  /** The workflow that delivers it. */
  workflow_id: string;
  /** By the database's clock; 0 when it is due. */
  dueInMs: number;
  /** Time since it was due. */
  overdueMs: number;
  /** True for a marketing email with unsent copies, and for an email with deferred recipients. */
  copies_left: boolean;
  /** True if it may have crashed the process that delivered it. */
  is_suspect: boolean;
  /** The number of isolated processes that it has crashed. */
  crashes: number;
  /** Time since its organization was suspended; null while that is active. */
  suspendedForMs: number | null;
}

/**
 * Emails up to this size (bodies of all copies) are read when they are locked. Larger ones are read after memory was reserved for
 * them, because hundreds of emails may be in flight in one process.
 */
export const SMALL_BODY_BYTES = 65_536;

/** Bodies from before encryption are measured by the headers of the stored values, without being decompressed. */
const BODY_BYTES = `coalesce(body.body_bytes, coalesce(octet_length(body.html), 0) + coalesce(octet_length(body.text), 0))`;
const IS_SMALL = `size.body_bytes * size.copies <= ${SMALL_BODY_BYTES}`;

/**
 * Locks the rows of emails until the caller's transaction ends, in the order of their ids. It is a statement of its own: if one that
 * waits also reads copies, it does not see those that the previous holder recorded, and Postgres 18.4 crashes or reads those of
 * another email (decision 188).
 * @param orgId when given, only that organization's emails
 */
export async function lockRows(client: Db, ids: readonly string[], orgId: string | null = null): Promise<void> {
  await execute(client, {
    name: 'lock_emails',
    text: 'SELECT FROM emails WHERE id = ANY ($1) AND ($2::text IS NULL OR org_id = $2) ORDER BY id FOR UPDATE',
    values: [ids, orgId],
  });
}

/** Reads emails and locks their rows. Meanwhile reschedule and cancel wait; they then find a claimed email. */
export async function lockEmails(client: Db, ids: readonly string[]): Promise<LockedEmail[]> {
  const [, emails] = await Promise.all([lockRows(client, ids), readEmails(client, ids)]);
  return emails;
}

function readEmails(client: Db, ids: readonly string[]): Promise<LockedEmail[]> {
  return queryRows(client, {
    name: 'read_locked_emails',
    text: `SELECT email.id, email.org_id, email."from", email."to", email.cc, email.bcc, email.reply_to, email.subject,
                  email.marketing, email.headers, email.sealed_headers, size.body_bytes, size.copies,
                  CASE WHEN ${IS_SMALL} THEN body.html END AS html, CASE WHEN ${IS_SMALL} THEN body.text END AS text,
                  CASE WHEN ${IS_SMALL} THEN body.sealed END AS sealed_body,
                  email.status, email.scheduled_at, email.schedule_version, email.provider, email.workflow_id,
                  email.suspected_at IS NOT NULL AS is_suspect, email.crashes,
                  ${ATTACHMENTS_OF_EMAIL('email.id')} AS attachments,
                  greatest(ceil(extract(epoch FROM email.scheduled_at - clock_timestamp()) * 1000), 0)::float8 AS "dueInMs",
                  (extract(epoch FROM clock_timestamp() - coalesce(email.scheduled_at, email.created_at)) * 1000)::float8
                    AS "overdueMs",
                  ${HAS_COPIES_LEFT('email')} AS copies_left, ${SUSPENDED_FOR('email.org_id')} AS "suspendedForMs"
           FROM emails AS email LEFT JOIN email_bodies AS body ON body.email_id = email.id AND body.email_id = ANY ($1)
                CROSS JOIN LATERAL (SELECT ${BODY_BYTES} AS body_bytes, ${COPIES('email')} AS copies) AS size
           WHERE email.id = ANY ($1) ORDER BY email.id`,
    values: [ids],
  });
}

/**
 * Locks emails and returns their statuses; with a workflow id, only of emails that this workflow delivers. An email with
 * unsent copies is `queued`, even if reports about other copies have arrived.
 */
export async function lockStatuses(
  client: Db,
  ids: readonly string[],
  workflowId: string | null = null,
): Promise<Map<string, EmailStatus>> {
  const read = queryRows<{ id: string; status: EmailStatus }>;
  const [, rows] = await Promise.all([
    lockRows(client, ids),
    read(client, {
      name: 'read_locked_statuses',
      text: `SELECT id, CASE WHEN ${HAS_COPIES_LEFT('emails')} THEN 'queued' ELSE status END AS status FROM emails WHERE id = ANY ($1) AND ($2::text IS NULL OR workflow_id = $2)
             ORDER BY id`,
      values: [ids, workflowId],
    }),
  ]);
  return new Map(rows.map(({ id, status }) => [id, status]));
}

/** The bodies of one email as they are stored. */
export type StoredBodies = Pick<StoredContent, 'id' | 'html' | 'text' | 'sealed_body'>;

/** Reads the bodies of emails, however large they are. */
export function readBodies(db: Db, ids: readonly string[]): Promise<StoredBodies[]> {
  return queryRows(db, {
    name: 'read_bodies',
    text: 'SELECT email_id AS id, html, text, sealed AS sealed_body FROM email_bodies WHERE email_id = ANY ($1)',
    values: [ids],
  });
}

/** The size of an email's copies. */
export interface SendSize {
  id: string;
  org_id: string;
  /** A marketing email is sent once to each of its recipients. */
  copies: number;
  /** The size of the bodies of all copies. */
  bytes: number;
}

/** Returns the size of each email's copies without reading the bodies. */
export async function readSendSizes(db: Db, ids: readonly string[]): Promise<Map<string, SendSize>> {
  const rows = await queryRows<SendSize>(db, {
    name: 'read_send_sizes',
    text: `SELECT email.id, email.org_id, counted.copies, counted.copies * (${BODY_BYTES})::float8 AS bytes
           FROM emails AS email JOIN email_bodies AS body ON body.email_id = email.id AND body.email_id = ANY ($1)
                CROSS JOIN LATERAL (SELECT ${COPIES('email')} AS copies) AS counted
           WHERE email.id = ANY ($1)`,
    values: [ids],
  });
  return new Map(rows.map((row) => [row.id, row]));
}

/**
 * The outcome of an attempt:
 * sent      the provider accepted the message, of a marketing email at least one copy, otherwise for at least one recipient
 * refused   the provider refused it permanently
 * again     it was not accepted, for a temporary reason
 * account   the provider refused our account; it does not count as a failed attempt
 * unknown   ambiguous: the provider may have accepted it
 * lost      ambiguous before; a look-up confirmed that the provider does not have it
 * risked    ambiguous before; it could not be looked up, and the message was sent again
 * given_up  ambiguous before; it could not be looked up, and the copies of the call failed while others are still sent
 */
export type AttemptOutcome = 'sent' | 'refused' | 'again' | 'unknown' | 'lost' | 'risked' | 'account' | 'given_up';

/** The changes that a provider's answer about one email causes: of its copies, and through the projection. */
export interface AttemptChanges {
  readonly copies: readonly CopyEnding[];
  readonly sent: readonly EmailChangeInput[];
  readonly bounced: readonly EmailChangeInput[];
  readonly rejected: readonly EmailChangeInput[];
  /** Recipients that were deferred; missing in answers that an earlier version recorded. */
  readonly delivery_delayed_for_one?: readonly EmailChangeInput[];
}

/** Recorded with an answer that changes nothing but is still to be applied. */
export const NO_CHANGES: AttemptChanges = { copies: [], sent: [], bounced: [], rejected: [] };

export interface Attempt {
  message_id: string;
  /** The number of the attempt, from 1. */
  n: number;
  /**
   * Attempts since a provider last accepted or permanently refused a part of the message, including this one. Attempts that
   * were refused because of our account do not count.
   */
  failures: number;
  call: string;
  provider: string;
  /** The number of the worker that made the call; see `inspectWorkers`. */
  worker: number | null;
  /** False while the last bytes of the message have not left; null if that is not recorded for the provider. */
  handedOver: boolean | null;
  outcome: AttemptOutcome | null;
  detail: string | null;
  /** The provider's own code for a chat-app message. */
  code: string | null;
  provider_message_id: string | null;
  /** Changes of the answer that the other fields do not contain (bounces, copies); null if there are none or once applied. */
  changes: AttemptChanges | null;
  /** True if the message is attempted again although a call of this or an earlier attempt may have delivered it. */
  mayBeDelivered: boolean;
  /** The number of lookups at the provider. */
  checks: number;
  /** Time since it began. */
  ageMs: number;
  /** The time of its beginning, and of its outcome if there is one, by Postgres's clock in Unix milliseconds. */
  startedAtMs: number;
  endedAtMs: number | null;
  /** Time since the provider's first "not found"; null without one. */
  notFoundForMs: number | null;
  /**
   * Time since the first attempt that the provider refused because of our account, of those after it last accepted or
   * permanently refused a part; null without one.
   */
  accountRefusedForMs: number | null;
}

/** Returns true if the outcome of an attempt is unknown: its worker died, or the provider did not answer. */
export function isAmbiguous(attempt: Attempt): boolean {
  return attempt.outcome === null || attempt.outcome === 'unknown';
}

/** Returns true if the provider accepted the message or refused it permanently. */
export function hasFinalOutcome({ outcome }: Attempt): boolean {
  return outcome === 'sent' || outcome === 'refused';
}

/**
 * Returns the latest attempt of each message that has one. It must see the writes of the previous holder of their locks, so send
 * it after the statement that locks them: its snapshot is then later.
 */
export function lastAttempts(db: Db, messageIds: readonly string[]): Promise<Attempt[]> {
  return queryRows(db, {
    name: 'last_attempts',
    text: `SELECT DISTINCT ON (message_id) message_id, n, call, provider, worker, handed_over AS "handedOver", outcome, detail, code,
                  provider_message_id, changes, checks,
                  (n - final_n - count(*) FILTER (WHERE outcome = 'account' AND n > final_n) OVER (PARTITION BY message_id))::integer
                    AS failures,
                  (extract(epoch FROM clock_timestamp()
                     - min(started_at) FILTER (WHERE outcome = 'account' AND n > final_n) OVER (PARTITION BY message_id)) * 1000)::float8
                    AS "accountRefusedForMs",
                  count(*) FILTER (WHERE outcome = 'risked') OVER (PARTITION BY message_id) > 0 AS "mayBeDelivered",
                  (extract(epoch FROM clock_timestamp() - started_at) * 1000)::float8 AS "ageMs",
                  (extract(epoch FROM started_at) * 1000)::float8 AS "startedAtMs",
                  (extract(epoch FROM ended_at) * 1000)::float8 AS "endedAtMs",
                  (extract(epoch FROM clock_timestamp() - denied_at) * 1000)::float8 AS "notFoundForMs"
           FROM (
             SELECT *, coalesce(max(n) FILTER (WHERE outcome IN ('sent', 'refused')) OVER (PARTITION BY message_id), 0) AS final_n
             FROM attempts WHERE message_id = ANY ($1)
           ) AS attempt
           ORDER BY message_id, n DESC`,
    values: [messageIds],
  });
}

/**
 * Counts how often each message was sent again before this attempt although an earlier call may have delivered it. Of a marketing
 * email, the copies of the attempt's call count, or the email if an earlier version recorded no calls of its copies. Workers that
 * reconcile the same attempt concurrently get the same number.
 */
export async function countRepeats(
  db: Db,
  attempts: readonly Pick<Attempt, 'message_id' | 'n' | 'call'>[],
): Promise<Map<string, number>> {
  const rows = await queryRows<{ message_id: string; repeats: number }>(db, {
    name: 'count_repeats',
    text: `SELECT message_id, coalesce(of_copies.repeats, of_whole.repeats)::integer AS repeats
           FROM unnest($1::text[], $2::integer[], $3::text[]) AS attempt(message_id, n, call)
           CROSS JOIN LATERAL (
             SELECT max(CASE WHEN copy.call = attempt.call THEN copy.repeats ELSE 0 END) AS repeats
             FROM email_recipients AS copy WHERE copy.email_id = attempt.message_id AND copy.call IS NOT NULL
           ) AS of_copies
           CROSS JOIN LATERAL (
             SELECT count(*) AS repeats FROM attempts AS earlier
             WHERE earlier.message_id = attempt.message_id AND earlier.n < attempt.n AND earlier.outcome = 'risked'
           ) AS of_whole`,
    values: columns(attempts, 'message_id', 'n', 'call'),
  });
  return new Map(rows.map(({ message_id, repeats }) => [message_id, repeats]));
}

/**
 * Records attempts. Must be committed before the provider is called. Fails as if Postgres were unreachable if the worker's session is
 * not connected to it, since others would take the calls for ended.
 * @param worker see `WorkerLease`
 */
export async function beginAttempts(
  db: Db,
  attempts: readonly (Pick<Attempt, 'message_id' | 'n' | 'call' | 'provider'> & Partial<Pick<Attempt, 'handedOver'>>)[],
  worker: number | null = null,
): Promise<void> {
  if (attempts.length === 0) return;
  await execute(db, {
    name: 'begin_attempts',
    text: `INSERT INTO attempts (message_id, n, call, provider, handed_over, worker)
           SELECT *, (SELECT require_worker_session($6) WHERE $6 IS NOT NULL)
           FROM unnest($1::text[], $2::integer[], $3::text[], $4::text[], $5::boolean[])`,
    values: [...columns(attempts, 'message_id', 'n', 'call', 'provider', 'handedOver'), worker],
  });
}

/** How an attempt ended. */
export interface AttemptEnding {
  readonly message_id: string;
  readonly n: number;
  /** `none` if the provider was not called: the attempt is deleted, since it was none. */
  readonly outcome: AttemptOutcome | 'none';
  readonly detail: string | null;
  readonly code?: string;
  readonly provider_message_id?: string;
  readonly changes?: AttemptChanges;
}

/**
 * Records how attempts ended. A later `sent` replaces another outcome; nothing replaces `sent`. An attempt that was requeued as a
 * fallback template, which is `again` with a provider's id, stays so if its `sent` is recorded once more. Writers of the same
 * attempts may deadlock (40P01): callers retry.
 */
export async function endAttempts(db: Db, all: readonly AttemptEnding[]): Promise<void> {
  await deleteAttempts(
    db,
    all.filter(({ outcome }) => outcome === 'none'),
  );
  const endings = all.filter(({ outcome }) => outcome !== 'none');
  if (endings.length === 0) return;
  await execute(db, {
    name: 'end_attempts',
    text: `UPDATE attempts AS attempt
           SET outcome = ending.outcome, code = ending.code, ended_at = clock_timestamp(),
               -- What the provider answered stays in front of what a look-up found.
               detail = CASE WHEN ending.outcome = 'lost' THEN concat_ws('. ', rtrim(attempt.detail, '.'), ending.detail)
                             ELSE ending.detail END,
               provider_message_id = coalesce(ending.provider_message_id, attempt.provider_message_id),
               changes = coalesce(ending.changes, attempt.changes)
           FROM unnest($1::text[], $2::integer[], $3::text[], $4::text[], $5::text[], $6::text[], $7::jsonb[])
                  AS ending(message_id, n, outcome, detail, code, provider_message_id, changes)
           WHERE attempt.message_id = ending.message_id AND attempt.n = ending.n AND attempt.message_id = ANY ($1)
             AND (attempt.outcome IS NULL OR attempt.outcome = 'unknown'
                  OR ending.outcome = 'sent' AND NOT (attempt.outcome = 'again' AND attempt.provider_message_id IS NOT NULL))`,
    values: columns(endings, 'message_id', 'n', 'outcome', 'detail', 'code', 'provider_message_id', 'changes'),
  });
}

/** Deletes attempts whose provider was not called. */
async function deleteAttempts(db: Db, attempts: readonly Pick<Attempt, 'message_id' | 'n'>[]): Promise<void> {
  if (attempts.length === 0) return;
  await execute(db, {
    name: 'delete_attempts',
    text: `DELETE FROM attempts AS attempt USING unnest($1::text[], $2::integer[]) AS uncalled(message_id, n)
           WHERE attempt.message_id = uncalled.message_id AND attempt.n = uncalled.n AND attempt.message_id = ANY ($1)
             AND attempt.outcome IS NULL`,
    values: columns(attempts, 'message_id', 'n'),
  });
}

/** Returns those of these attempts that have these outcomes. */
export function findWithOutcomes(
  db: Db,
  attempts: readonly Pick<AttemptEnding, 'message_id' | 'n' | 'outcome'>[],
): Promise<Pick<Attempt, 'message_id' | 'n' | 'outcome'>[]> {
  return queryRows(db, {
    name: 'find_with_outcomes',
    text: `SELECT message_id, n, outcome FROM attempts
           WHERE (message_id, n, outcome) IN (SELECT * FROM unnest($1::text[], $2::integer[], $3::text[]))
             AND message_id = ANY ($1)`,
    values: columns(attempts, 'message_id', 'n', 'outcome'),
  });
}

/** Marks the changes of attempts as applied. */
export async function clearChanges(db: Db, attempts: readonly Pick<Attempt, 'message_id' | 'n'>[]): Promise<void> {
  if (attempts.length === 0) return;
  await execute(db, {
    name: 'clear_changes',
    text: `UPDATE attempts AS attempt SET changes = NULL
           FROM unnest($1::text[], $2::integer[]) AS applied(message_id, n)
           WHERE attempt.message_id = applied.message_id AND attempt.n = applied.n AND attempt.message_id = ANY ($1)
             AND attempt.changes IS NOT NULL`,
    values: columns(attempts, 'message_id', 'n'),
  });
}

/**
 * Counts a lookup of a call at its provider.
 * @param isNotFound false if the provider was unreachable
 */
export async function recordLookups(
  db: Db,
  call: string,
  messageIds: readonly string[],
  isNotFound: boolean,
): Promise<void> {
  if (messageIds.length === 0) return;
  await execute(
    db,
    `UPDATE attempts SET checks = checks + 1, denied_at = CASE WHEN $3 THEN coalesce(denied_at, now()) ELSE denied_at END
     WHERE call = $1 AND message_id = ANY ($2)`,
    [call, messageIds, isNotFound],
  );
}
