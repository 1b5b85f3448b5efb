import type { BounceReason, EmailStatus } from '../domain/email.ts';
import type { AttemptOutcome } from './attempts.ts';
import { wireTime } from './emails.ts';
import type { Db } from './pool.ts';

/** An attempt as people read it. */
export interface ToldAttempt {
  n: number;
  provider: string;
  started_at: string;
  ended_at: string | null;
  /** Null while it is under way, or when nobody saw its end. */
  outcome: AttemptOutcome | null;
  /** What the provider answered, or what went wrong. */
  detail: string | null;
  code: string | null;
}

/** Only what was told of one of the recipients; of the others is told what is told of the email. */
export interface ToldRecipient {
  recipient: string;
  status: EmailStatus;
  error: string | null;
  bounce_reason: BounceReason | null;
}

/** What only operators of an email need to know. */
export interface EmailDetails {
  /** The Temporal workflow that carries it. */
  workflow_id: string;
  provider: string | null;
  provider_message_id: string | null;
  has_html: boolean;
  /** Its plain text, or null. */
  text: string | null;
  timeline: { type: string; created_at: string; recipient: string | null }[];
  recipients: ToldRecipient[];
  attempts: ToldAttempt[];
}

const ATTEMPTS_OF = (messageId: string): string =>
  `(SELECT coalesce(json_agg(json_build_object(
      'n', n, 'provider', provider, 'started_at', ${wireTime('started_at')}, 'ended_at', ${wireTime('ended_at')},
      'outcome', outcome, 'detail', detail, 'code', code) ORDER BY n), '[]')
    FROM attempts WHERE message_id = ${messageId})`;

/** The details of one email, as of one instant. */
export async function findEmailDetails(db: Db, orgId: string, id: string): Promise<EmailDetails | undefined> {
  const { rows } = await db.query<EmailDetails>({
    name: 'find_email_details',
    text: `SELECT workflow_id, provider, provider_message_id, coalesce(body.html, '') <> '' AS has_html,
                  nullif(body.text, '') AS text,
                  (SELECT coalesce(json_agg(json_build_object(
                     'type', type, 'created_at', ${wireTime('created_at')}, 'recipient', recipient) ORDER BY created_at, id), '[]')
                   FROM email_events WHERE email_id = email.id) AS timeline,
                  (SELECT coalesce(json_agg(json_build_object(
                     'recipient', recipient, 'status', status, 'error', error, 'bounce_reason', bounce_reason)
                     ORDER BY recipient), '[]')
                   FROM email_recipients WHERE email_id = email.id) AS recipients,
                  ${ATTEMPTS_OF('email.id')} AS attempts
           FROM emails AS email LEFT JOIN email_bodies AS body ON body.email_id = email.id
           WHERE email.id = $1 AND email.org_id = $2`,
    values: [id, orgId],
  });
  return rows[0];
}

/** What an email says. */
export interface EmailBodies {
  html: string | null;
  text: string | null;
}

/** What one email says; undefined when there is no such email, or when its bodies are not kept any more. */
export async function findBodies(db: Db, orgId: string, id: string): Promise<EmailBodies | undefined> {
  const { rows } = await db.query<EmailBodies>({
    name: 'find_bodies',
    text: `SELECT body.html, body.text FROM emails AS email JOIN email_bodies AS body ON body.email_id = email.id
           WHERE email.id = $1 AND email.org_id = $2`,
    values: [id, orgId],
  });
  return rows[0];
}

/** What only operators of a chat-app message need to know. */
export interface ChatDetails {
  provider: string | null;
  provider_message_id: string | null;
  attempts: ToldAttempt[];
}

/** The details of one chat-app message, as of one instant. */
export async function findChatDetails(db: Db, orgId: string, id: string): Promise<ChatDetails | undefined> {
  const { rows } = await db.query<ChatDetails>({
    name: 'find_chat_details',
    text: `SELECT provider, provider_message_id, ${ATTEMPTS_OF('chat.id')} AS attempts
           FROM chat_messages AS chat WHERE id = $1 AND org_id = $2`,
    values: [id, orgId],
  });
  return rows[0];
}
