import type { EmailContent } from '../../domain/email/content.ts';
import type { BounceReason, EmailStatus } from '../../domain/email/email.ts';
import type { AttemptOutcome } from './attempts.ts';
import type { EmailContents, StoredContent } from './contents.ts';
import type { EventDetail } from '../../domain/event-detail.ts';
import { TIMELINE_OF, wireTime } from './emails.ts';
import { type Db, executeOne, queryRow } from '../postgres/pool.ts';

/** An attempt as the dashboard shows it. */
export interface AttemptDetails {
  n: number;
  provider: string;
  started_at: string;
  ended_at: string | null;
  /** Null while it is in flight, or if its worker died. */
  outcome: AttemptOutcome | null;
  /** The provider's answer, or the reason why there is none. */
  detail: string | null;
  code: string | null;
}

/** Only recipients with reports of their own; the email's state applies to the others. */
export interface RecipientDetails {
  recipient: string;
  status: EmailStatus;
  error: string | null;
  bounce_reason: BounceReason | null;
}

/** An entry of a timeline as the dashboard shows it. */
export interface TimelineEntry {
  type: string;
  created_at: string;
  /** Null if it is about the whole email. */
  recipient: string | null;
  detail: EventDetail | null;
}

/** The fields of an email that only the dashboard shows. */
export interface EmailDetails {
  /** The Temporal workflow that delivers it. */
  workflow_id: string;
  provider: string | null;
  provider_message_id: string | null;
  /** The email that this one repeats. */
  resend_of: string | null;
  /** The emails that repeat this one, oldest first. */
  resent_as: string[] | null;
  timeline: TimelineEntry[];
  recipients: RecipientDetails[];
  attempts: AttemptDetails[];
}

const ATTEMPTS_OF = (messageId: string): string =>
  `(SELECT coalesce(json_agg(json_build_object(
      'n', n, 'provider', provider, 'started_at', ${wireTime('started_at')}, 'ended_at', ${wireTime('ended_at')},
      'outcome', outcome, 'detail', detail, 'code', code) ORDER BY n), '[]')
    FROM attempts WHERE message_id = ${messageId})`;

/** Reads the details of an email in one snapshot. */
export function findEmailDetails(db: Db, orgId: string, id: string): Promise<EmailDetails | undefined> {
  return queryRow(db, {
    name: 'find_email_details',
    text: `SELECT workflow_id, provider, provider_message_id, resend_of, resent_as,
                  (SELECT coalesce(json_agg(json_build_object(
                     'type', type, 'created_at', ${wireTime('created_at')}, 'recipient', recipient, 'detail', detail)
                     ORDER BY created_at, id), '[]')
                   FROM ${TIMELINE_OF('email')} AS event) AS timeline,
                  (SELECT coalesce(json_agg(json_build_object(
                     'recipient', recipient, 'status', status, 'error', error, 'bounce_reason', bounce_reason)
                     ORDER BY recipient), '[]')
                   FROM email_recipients WHERE email_id = email.id) AS recipients,
                  ${ATTEMPTS_OF('email.id')} AS attempts
           FROM emails AS email WHERE email.id = $1 AND email.org_id = $2`,
    values: [id, orgId],
  });
}

/** Returns true if an organization has an email. */
export function emailExists(db: Db, orgId: string, id: string): Promise<boolean> {
  return executeOne(db, `SELECT FROM emails WHERE id = $1 AND org_id = $2`, [id, orgId]);
}

/** Returns the content of an email; undefined if the email does not exist or its content was erased. */
export async function findContent(
  db: Db,
  contents: EmailContents,
  orgId: string,
  id: string,
): Promise<(EmailContent & { subject: string }) | undefined> {
  const row = await queryRow<StoredContent & { subject: string }>(db, {
    name: 'find_content',
    text: `SELECT email.id, email.org_id, email.subject, body.html, body.text, body.sealed AS sealed_body, email.headers, email.sealed_headers
           FROM emails AS email JOIN email_bodies AS body ON body.email_id = email.id
           WHERE email.id = $1 AND email.org_id = $2`,
    values: [id, orgId],
  });
  return row && { subject: row.subject, ...(await contents.open(db, row)) };
}

/** The fields of a chat-app message that only the dashboard shows. */
export interface ChatDetails {
  provider: string | null;
  provider_message_id: string | null;
  timeline: TimelineEntry[];
  attempts: AttemptDetails[];
}

/** Reads the details of a chat-app message in one snapshot. */
export function findChatDetails(db: Db, orgId: string, id: string): Promise<ChatDetails | undefined> {
  return queryRow(db, {
    name: 'find_chat_details',
    text: `SELECT provider, provider_message_id,
                  (SELECT coalesce(json_agg(json_build_object(
                     'type', type, 'created_at', ${wireTime('created_at')}, 'recipient', NULL, 'detail', detail)
                     ORDER BY created_at, id), '[]')
                   FROM chat_events WHERE message_id = chat.id) AS timeline,
                  ${ATTEMPTS_OF('chat.id')} AS attempts
           FROM chat_messages AS chat WHERE id = $1 AND org_id = $2`,
    values: [id, orgId],
  });
}
