import type { BounceReason, EmailStatus } from '../../domain/email/email.ts';
import { REPORTED_STATUSES } from '../../domain/email/states.ts';
import { SUPPRESSED_AFTER_CALL_ERROR } from '../../domain/email/suppression.ts';
import { type Db, execute, queryRows } from '../postgres/pool.ts';
import { groupBy } from '../../lib/group.ts';
import { columns } from '../postgres/columns.ts';

/** One recipient of one email; the address in lower case. */
export interface Recipient {
  readonly email_id: string;
  readonly recipient: string;
}

/** Records suppressed recipients of an email. One with an error may have received it before and has `failed`. */
export async function recordSuppressed(
  db: Db,
  recipients: readonly (Recipient & { readonly error?: string })[],
): Promise<void> {
  if (recipients.length === 0) return;
  await execute(db, {
    name: 'note_suppressed',
    text: `INSERT INTO email_recipients (email_id, recipient, status, error)
           SELECT email_id, recipient, CASE WHEN error IS NULL THEN 'suppressed' ELSE 'failed' END, error
           FROM unnest($1::text[], $2::text[], $3::text[]) AS input(email_id, recipient, error)
           ON CONFLICT DO NOTHING`,
    values: columns(recipients, 'email_id', 'recipient', 'error'),
  });
}

/** A report about a recipient. */
export interface RecipientReport extends Recipient {
  readonly status: EmailStatus;
  readonly error: string | undefined;
  readonly bounce_reason: BounceReason | undefined;
}

/** A recipient's statuses in ascending order: a report never lowers the status. */
const RANKS = ['queued', 'failed', ...REPORTED_STATUSES] satisfies EmailStatus[];

/** Returns the report of the highest rank about each recipient. */
export function highestReports(reports: readonly RecipientReport[]): RecipientReport[] {
  const rank = ({ status }: RecipientReport) => (RANKS as EmailStatus[]).indexOf(status);
  const ofRecipients = groupBy(reports, ({ email_id, recipient }) => `${email_id} ${recipient}`);
  return [...ofRecipients.values()].map((same) =>
    same.reduce((highest, each) => (rank(each) > rank(highest) ? each : highest)),
  );
}

/** Records reports about recipients, at most one for each. */
export async function reportRecipients(client: Db, reports: readonly RecipientReport[]): Promise<void> {
  if (reports.length === 0) return;
  await execute(client, {
    name: 'report_recipients',
    text: `INSERT INTO email_recipients AS known (email_id, recipient, status, error, bounce_reason)
           SELECT * FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
           ON CONFLICT (email_id, recipient) DO UPDATE
           SET status = EXCLUDED.status, error = EXCLUDED.error, bounce_reason = EXCLUDED.bounce_reason,
               changed_at = EXCLUDED.changed_at
           WHERE coalesce(array_position($1::text[], known.status), 0) < array_position($1::text[], EXCLUDED.status)`,
    values: [RANKS, ...columns(reports, 'email_id', 'recipient', 'status', 'error', 'bounce_reason')],
  });
}

/** A copy that is still to be sent. */
export interface UnsentCopy extends Recipient {
  /** The last provider call that it was part of, whose ids sort by time; null before the first. */
  readonly call: string | null;
  /** How often it will have been sent again after ambiguous calls, including its next call. */
  readonly repeats: number;
}

/** Returns SQL for the repeats of a copy in its next call. OFFSET 0 prevents a plan that reads all attempts. */
const NEXT_REPEATS = (copy: string): string =>
  `(${copy}.repeats + (EXISTS (SELECT FROM attempts
      WHERE message_id = ${copy}.email_id AND attempts.call = ${copy}.call AND outcome = 'risked' OFFSET 0))::integer)`;

/**
 * Records the recipients of marketing emails unless they are recorded. A recipient that was suppressed meanwhile gets no copy, and
 * has `failed` if an ambiguous call may have delivered it. It is called for each part of an email, so it only reads rows that stay
 * `queued`. OFFSET 0 prevents a plan that reads all copies.
 */
export async function prepareCopies(
  db: Db,
  inputs: readonly (Recipient & { readonly suppressed: boolean })[],
): Promise<UnsentCopy[]> {
  if (inputs.length === 0) return [];
  return queryRows(db, {
    name: 'prepare_copies',
    text: `WITH requested AS MATERIALIZED (
             SELECT * FROM unnest($1::text[], $2::text[], $3::boolean[]) AS requested(email_id, recipient, suppressed)
           ), prepared AS (
             INSERT INTO email_recipients AS known (email_id, recipient, status)
             SELECT email_id, recipient, CASE WHEN suppressed THEN 'suppressed' ELSE 'queued' END FROM requested
             ON CONFLICT (email_id, recipient) DO UPDATE SET (status, error) = (
               SELECT CASE WHEN repeats > 0 THEN 'failed' ELSE 'suppressed' END, CASE WHEN repeats > 0 THEN $4::text END
               FROM (SELECT ${NEXT_REPEATS('known')} AS repeats) AS next
             )
             WHERE known.status = 'queued' AND EXCLUDED.status = 'suppressed'
             RETURNING email_id, recipient, status
           )
           SELECT email_id, recipient, NULL AS call, 0 AS repeats FROM prepared WHERE status = 'queued'
           UNION ALL
           SELECT requested.email_id, requested.recipient, known.call, ${NEXT_REPEATS('known')} FROM requested CROSS JOIN LATERAL (
             SELECT email_id, status, call, repeats FROM email_recipients
             WHERE email_id = requested.email_id AND recipient = requested.recipient OFFSET 0
           ) AS known
           WHERE known.status = 'queued' AND NOT requested.suppressed`,
    values: [...columns(inputs, 'email_id', 'recipient', 'suppressed'), SUPPRESSED_AFTER_CALL_ERROR],
  });
}

/** Deletes the copies of emails that end before any copy was sent. */
export async function deleteUnsentCopies(db: Db, emailIds: readonly string[]): Promise<void> {
  if (emailIds.length === 0) return;
  await execute(db, {
    name: 'delete_unsent_copies',
    text: `DELETE FROM email_recipients WHERE email_id = ANY ($1) AND status = 'queued'`,
    values: [emailIds],
  });
}

/** Records the provider call of copies, and whether it repeats an ambiguous one. Must be committed before the call is made. */
export async function beginCopies(db: Db, copies: readonly (Recipient & { readonly call: string })[]): Promise<void> {
  if (copies.length === 0) return;
  await execute(db, {
    name: 'begin_copies',
    text: `UPDATE email_recipients AS known SET call = input.call, repeats = ${NEXT_REPEATS('known')}
           FROM unnest($1::text[], $2::text[], $3::text[]) AS input(email_id, recipient, call)
           WHERE known.email_id = input.email_id AND known.recipient = input.recipient AND known.email_id = ANY ($1)`,
    values: columns(copies, 'email_id', 'recipient', 'call'),
  });
}

/** How a call ended for one copy, or for one recipient of an email with deferred recipients. */
export interface CopyEnding extends Recipient {
  /** `queued` with an error: it was deferred. `queued` without one: ambiguous. */
  readonly status: 'sent' | 'rejected' | 'queued';
  readonly error: string | null;
  readonly provider_message_id: string | null;
  /** The call; missing in answers that an earlier version recorded, and where a lookup found the copy. */
  readonly call?: string;
}

/**
 * Records the recipients of emails of which a call deferred some, unless they are recorded. They have been repeated as often as the
 * whole email was.
 */
export async function divideEmails(db: Db, endings: readonly CopyEnding[]): Promise<void> {
  const ids = new Set(endings.flatMap(({ email_id, status }) => (status === 'queued' ? email_id : [])));
  const divided = endings.filter(({ email_id }) => ids.has(email_id));
  if (divided.length === 0) return;
  await execute(db, {
    name: 'divide_emails',
    text: `WITH marked AS (
             UPDATE emails SET deferred = true WHERE id = ANY ($1) AND deferred IS NOT TRUE
           )
           INSERT INTO email_recipients (email_id, recipient, status, call, repeats)
           SELECT ending.email_id, ending.recipient, 'queued', ending.call, (
             SELECT count(*) FROM attempts WHERE message_id = ending.email_id AND outcome = 'risked'
           )
           FROM unnest($1::text[], $2::text[], $3::text[]) AS ending(email_id, recipient, call)
           ON CONFLICT DO NOTHING`,
    values: columns(divided, 'email_id', 'recipient', 'call'),
  });
}

/**
 * Records how calls ended for copies. A copy that was reported about meanwhile keeps its status, and one that was sent again since
 * was not deferred by its last call.
 */
export async function endCopies(db: Db, endings: readonly CopyEnding[]): Promise<void> {
  if (endings.length === 0) return;
  await execute(db, {
    name: 'end_copies',
    text: `UPDATE email_recipients AS known
           SET status = CASE WHEN known.status = 'queued' THEN ending.status ELSE known.status END,
               error = CASE WHEN known.status = 'queued' THEN ending.error ELSE known.error END,
               call = CASE WHEN ending.status = 'queued' AND ending.error IS NOT NULL THEN '' ELSE known.call END,
               provider_message_id = ending.provider_message_id, changed_at = clock_timestamp()
           FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
                  AS ending(email_id, recipient, status, error, provider_message_id, call)
           WHERE known.email_id = ending.email_id AND known.recipient = ending.recipient AND known.email_id = ANY ($1)
             AND (ending.status <> 'queued' OR (known.status = 'queued' AND known.call = ending.call))`,
    values: columns(endings, 'email_id', 'recipient', 'status', 'error', 'provider_message_id', 'call'),
  });
}

/**
 * Fails the unsent copies of emails.
 * @param failed if `call` is set, fails only the copies of that call. Earlier versions recorded no call: then all unsent copies fail.
 * `afterDeferral` follows the server's last answer about a deferred recipient, in place of `error`.
 * @returns the copies that have failed
 */
export async function failCopies(
  db: Db,
  failed: readonly {
    readonly id: string;
    readonly error: string;
    readonly call?: string;
    readonly afterDeferral?: string;
  }[],
): Promise<(Recipient & { readonly error: string })[]> {
  if (failed.length === 0) return [];
  return queryRows(db, {
    name: 'fail_copies',
    text: `UPDATE email_recipients AS known
           SET status = 'failed', changed_at = clock_timestamp(),
               error = coalesce(CASE WHEN known.call = '' THEN known.error || ' ' || input.after_deferral END, input.error)
           FROM (
             -- Not in the condition, which is evaluated again after a wait for a lock (decision 188).
             SELECT *, EXISTS (SELECT FROM email_recipients AS copy
                               WHERE copy.email_id = input.email_id AND copy.call = input.call OFFSET 0) AS has_copies
             FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS input(email_id, error, call, after_deferral) OFFSET 0
           ) AS input
           WHERE known.email_id = input.email_id AND known.email_id = ANY ($1) AND known.status = 'queued'
             AND (input.call IS NULL OR known.call = input.call OR NOT input.has_copies)
           RETURNING known.email_id, known.recipient, known.error`,
    values: columns(failed, 'id', 'error', 'call', 'afterDeferral'),
  });
}

/** A recipient of an email with deferred recipients. */
export interface DividedRecipient extends Recipient {
  /** True if the email is still to be sent to it. */
  readonly is_queued: boolean;
  /** True if the email was never sent to it, because it was suppressed before the first call. */
  readonly is_left_out: boolean;
}

/** Returns the recipients of emails with deferred recipients. */
export async function recipientsOfDivided(db: Db, emailIds: readonly string[]): Promise<DividedRecipient[]> {
  if (emailIds.length === 0) return [];
  return queryRows(db, {
    name: 'recipients_of_divided',
    text: `SELECT email_id, recipient, status = 'queued' AS is_queued,
                  status IN ('suppressed', 'failed') AND call IS NULL AS is_left_out
           FROM email_recipients WHERE email_id = ANY ($1)`,
    values: [emailIds],
  });
}

/** A status of an email's copies. */
export interface CopyStatus {
  readonly email_id: string;
  readonly status: EmailStatus;
  /** The error of one of them. */
  readonly error: string | null;
  /** The provider of their last call; null before the first. */
  readonly provider: string | null;
}

/**
 * Returns the distinct statuses of marketing emails' copies, those with the latest calls first. Earlier versions, and a lookup after
 * a restore, record no calls of copies: then the provider of the email's last attempt counts.
 */
export async function statusesOfCopies(db: Db, emailIds: readonly string[]): Promise<CopyStatus[]> {
  if (emailIds.length === 0) return [];
  return queryRows(db, {
    name: 'statuses_of_copies',
    text: `SELECT email_id, status, error, (
             SELECT provider FROM attempts
             WHERE message_id = email_id AND (attempts.call = copies.call OR copies.call IS NULL) ORDER BY n DESC LIMIT 1
           ) AS provider
           FROM (
             SELECT email_id, status, min(error) AS error, max(call) AS call FROM email_recipients
             WHERE email_id = ANY ($1) GROUP BY email_id, status
           ) AS copies
           ORDER BY email_id, call DESC NULLS LAST`,
    values: [emailIds],
  });
}

/**
 * Returns SQL that is true for a marketing email with unsent copies, and for an email with deferred recipients. Other emails need no
 * search for rows. OFFSET 0 prevents a plan that reads all copies.
 * @param email SQL of the email's row
 */
export const HAS_COPIES_LEFT = (email: string): string =>
  `((${email}.marketing OR ${email}.deferred IS TRUE) AND EXISTS (SELECT FROM email_recipients AS copy WHERE copy.email_id = ${email}.id AND copy.status = 'queued' OFFSET 0))`;

/** Returns SQL that is true while an email, or a copy of it, is to be sent. @param email SQL of the email's row */
export const IS_OPEN = (email: string): string =>
  `(${email}.status IN ('queued', 'scheduled') OR ${HAS_COPIES_LEFT(email)})`;
