import type { Attachment } from '../../domain/email/attachments.ts';
import type { EmailRequest, EmailStatus } from '../../domain/email/email.ts';
import type { MessageChannel } from '../../domain/messages/message.ts';
import { ATTACHMENTS_OF_EMAIL } from './attachments.ts';
import type { EmailContents } from './contents.ts';
import type { EmailSummary } from './summary.ts';
import { type Db, executeOne, queryRow, queryValue } from '../postgres/pool.ts';

/**
 * Returns SQL of the reason why a message cannot be scheduled for a time: `past`, or `far` after 30 days; null if it can. The days
 * are hours, because an interval of days depends on the daylight saving of the session's time zone.
 */
export const timeProblem = (time: string): string =>
  `CASE WHEN ${time} <= now() THEN 'past' WHEN ${time} > now() + interval '720 hours' THEN 'far' END`;

/** Returns SQL that formats a time as the API does. Needed for times inside JSON, which the driver does not convert. */
export const wireTime = (time: string): string =>
  `to_char((${time})::timestamptz(3) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** One email as the API shows it. */
export interface Email extends EmailSummary, Pick<EmailRequest, 'cc' | 'bcc' | 'reply_to' | 'headers'> {
  /** `machine` is set for opens and clicks that a program caused. */
  events: { type: string; created_at: string; machine?: true }[];
  attachments: (Attachment & { inline: boolean })[];
}

/**
 * SQL of an email's timeline, for a statement that reads the email. The acceptance of one that is due immediately has no row in
 * `email_events` unless a webhook endpoint gets it.
 */
export const TIMELINE_OF = (email: string): string => `(
  SELECT type, created_at, id, recipient, detail FROM email_events WHERE email_id = ${email}.id
  UNION ALL
  SELECT 'email.queued', ${email}.created_at, NULL, NULL, NULL
  WHERE NOT EXISTS (SELECT FROM email_events
                    WHERE email_id = ${email}.id AND type IN ('email.queued', 'email.scheduled') OFFSET 0))`;

/** One email with its timeline, as of one instant. */
export async function findEmail(
  db: Db,
  contents: EmailContents,
  orgId: string,
  id: string,
): Promise<Email | undefined> {
  const row = await queryRow<Email & { sealed_headers: Buffer | null }>(db, {
    name: 'find_email',
    text: `SELECT id, batch_id, "from", "to", cc, bcc, reply_to, subject, marketing, tags, headers, sealed_headers, status, error,
                  bounce_reason, created_at, scheduled_at, last_event_at,
                  (SELECT json_agg(json_strip_nulls(json_build_object(
                     'type', type, 'created_at', ${wireTime('created_at')}, 'machine', detail->'machine')) ORDER BY created_at, id)
                   FROM ${TIMELINE_OF('emails')} AS event) AS events,
                  ${ATTACHMENTS_OF_EMAIL('emails.id')} AS attachments
           FROM emails WHERE id = $1 AND org_id = $2`,
    values: [id, orgId],
  });
  if (!row) return undefined;
  const { sealed_headers, ...email } = row;
  return { ...email, headers: await contents.openHeaders(db, { ...email, org_id: orgId, sealed_headers }) };
}

/** The email that another one repeats. */
export interface Original {
  readonly id: string;
  /** If given, it must have this status and not have been resent before. */
  readonly status?: EmailStatus;
}

/** Links an email and the one that repeats it. @returns false if the original does not exist or may not be resent */
export function recordResend(db: Db, orgId: string, original: Original, copyId: string): Promise<boolean> {
  return executeOne(db, {
    name: 'record_resend',
    text: `WITH original AS (
             UPDATE emails SET resent_as = array_append(resent_as, $3)
             WHERE id = $2 AND org_id = $1 AND ($4::text IS NULL OR status = $4 AND resent_as IS NULL) RETURNING id
           )
           UPDATE emails AS copy SET resend_of = original.id FROM original WHERE copy.id = $3`,
    values: [orgId, original.id, copyId, original.status ?? null],
  });
}

/** The reason why an email or message could not be rescheduled or canceled. */
type UnmovedReason = 'not_found' | 'past' | 'far' | 'not_scheduled';

/**
 * Returns why an email or message could not be rescheduled or canceled.
 * @param channel of a message; undefined for an email
 */
export async function whyUnmoved(
  db: Db,
  orgId: string,
  id: string,
  scheduledAt: string | null,
  channel?: MessageChannel,
): Promise<UnmovedReason> {
  const [table, condition] = channel ? ['chat_messages', 'AND channel = $4'] : ['emails', ''];
  const row = await queryRow<{ time: 'past' | 'far' | null; is_scheduled: boolean }>(
    db,
    `SELECT ${timeProblem('$3::timestamptz')} AS time, status = 'scheduled' AS is_scheduled
     FROM ${table} WHERE id = $1 AND org_id = $2 ${condition}`,
    [id, orgId, scheduledAt, ...(channel ? [channel] : [])],
  );
  if (!row) return 'not_found';
  if (row.time !== null) return row.time;
  // No transition leads back to `scheduled`, so the time was refused as `far`. Meanwhile it has come within the 30 days.
  return row.is_scheduled && scheduledAt !== null ? 'far' : 'not_scheduled';
}

/** Returns the status of an email, or of a message of a channel; undefined if there is none with this id. */
export function statusOf(db: Db, orgId: string, id: string, channel?: MessageChannel): Promise<string | undefined> {
  const table = channel ? 'chat_messages' : 'emails';
  return queryValue(db, `SELECT status FROM ${table} WHERE id = $1 AND org_id = $2`, [id, orgId]);
}

/** Returns the `from` of an email, which never changes; undefined if there is no such email. */
export function senderOf(db: Db, orgId: string, id: string): Promise<string | undefined> {
  return queryValue(db, `SELECT "from" FROM emails WHERE id = $1 AND org_id = $2`, [id, orgId]);
}
