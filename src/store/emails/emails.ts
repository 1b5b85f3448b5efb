import { allowanceOf } from '../../domain/email/allowance.ts';
import type { Attachment } from '../../domain/email/attachments.ts';
import type { SealedContent } from '../../domain/email/content.ts';
import type { BounceReason, EmailRequest, EmailStatus, Tag } from '../../domain/email/email.ts';
import { ATTACHMENTS_OF_EMAIL } from './attachments.ts';
import { COUNT_ACCEPTED } from './hours.ts';
import type { EmailContents } from './contents.ts';
import type { IdempotencyKey } from '../limits/idempotency.ts';
import { type Db, queryRow, queryRows } from '../postgres/pool.ts';
import { COUNT_AGAINST_QUOTA } from '../limits/quota.ts';
import { IS_SUSPENDED } from '../accounts/suspension.ts';
import { BITS_OF_TAGS, STORE_TAGS } from './tags.ts';
import { ENQUEUE_WEBHOOKS } from '../webhooks/events.ts';
import { columns } from '../postgres/columns.ts';

/** The fields that the database checks. */
export interface SenderAndTime {
  /** The A-label of the domain in `from`. */
  from_domain: string;
  /** UTC with milliseconds, or null for immediately. */
  scheduled_at: string | null;
}

/** A valid email to store. */
export interface NewEmail extends EmailRequest, SenderAndTime {
  id: string;
  event_id: string;
  batch_id: string | null;
  /** Its content as it is stored; html, text and headers are empty then. */
  sealed?: SealedContent;
  /** The idempotency key of its request; its response is stored with it. */
  idempotency?: IdempotencyKey | undefined;
  /** The span of its request, which its delivery continues. */
  traceparent?: string | undefined;
}

/** Why an email was not stored; the database's clock decides about the first two. */
export type Refusal = 'past' | 'far' | 'suspended' | 'domain_not_found' | 'insufficient_scope' | 'domain_not_verified';

export interface Acceptance {
  id: string;
  status: 'queued' | 'scheduled';
  created_at: string;
  scheduled_at: string | null;
  refusal: Refusal | 'quota_exceeded' | null;
  /** Whether its organization has a quota. */
  has_quota: boolean;
}

/**
 * Stores emails with their bodies, first events and outbox rows, in one statement; those that an answer holds a refusal
 * for are left out. A quota that does not reach for all of them refuses all. Answers are in the order of the emails.
 * @param domainIds the only domains the caller's key may send from, or null
 * @throws SQLSTATE 23505 when an idempotency key has been used meanwhile; then nothing is stored
 */
export function acceptEmails(
  db: Db,
  orgId: string,
  domainIds: readonly string[] | null,
  emails: readonly NewEmail[],
): Promise<Acceptance[]> {
  return queryRows(db, {
    name: 'accept_emails',
    text: ACCEPT_EMAILS,
    values: acceptValues(orgId, domainIds, emails),
  });
}

function acceptValues(orgId: string, domainIds: readonly string[] | null, emails: readonly NewEmail[]): unknown[] {
  const list = (addresses: string[] | null) => (addresses === null ? null : JSON.stringify(addresses));
  return [
    orgId,
    domainIds,
    ...columns(emails, 'id', 'event_id', 'batch_id', 'from_domain', 'from'),
    emails.map((email) => list(email.to)),
    emails.map((email) => list(email.cc)),
    emails.map((email) => list(email.bcc)),
    emails.map((email) => list(email.reply_to)),
    ...columns(emails, 'subject', 'marketing'),
    emails.map((email) => JSON.stringify(email.tags)),
    emails.map((email) => JSON.stringify(email.headers)),
    ...columns(emails, 'html', 'text', 'scheduled_at'),
    emails.map((email) => email.idempotency?.key ?? null),
    emails.map((email) => email.idempotency?.fingerprint ?? null),
    traceparentsOf(emails),
    emails.map((email) => email.sealed?.sealed_body ?? null),
    emails.map((email) => email.sealed?.body_bytes ?? null),
    emails.map((email) => email.sealed?.sealed_headers ?? null),
    emails.map(allowanceOf),
  ];
}

/** Null for none at all, as in most places: a missing array reads as one of nulls. */
export function traceparentsOf(
  rows: readonly { readonly traceparent?: string | null | undefined }[],
): (string | null)[] | null {
  return rows.some(({ traceparent }) => traceparent) ? rows.map(({ traceparent }) => traceparent ?? null) : null;
}

/**
 * The first refusal among many emails, or undefined: times before domains, since fields are looked at first.
 * Stores nothing. `index` counts from 0.
 */
export function judgeEmails(
  db: Db,
  orgId: string,
  domainIds: readonly string[] | null,
  emails: readonly SenderAndTime[],
): Promise<{ index: number; refusal: Refusal } | undefined> {
  return queryRow(db, {
    name: 'judge_emails',
    text: JUDGE_EMAILS,
    values: [orgId, domainIds, ...columns(emails, 'from_domain', 'scheduled_at')],
  });
}

/** Whole hours: an interval of days would follow the session's daylight saving. */
export const timeProblem = (time: string): string =>
  `CASE WHEN ${time} <= now() THEN 'past' WHEN ${time} > now() + interval '720 hours' THEN 'far' END`;

/** The refusal of each row of `mail`, by the database's clock and domains. */
const JUDGED = `
  judged AS MATERIALIZED (
    SELECT mail.*,
      CASE WHEN mail.scheduled_at IS NULL THEN 'queued' ELSE 'scheduled' END AS status,
      coalesce(${timeProblem('scheduled_at')}, CASE
        WHEN ${IS_SUSPENDED('$1')} THEN 'suspended'
        WHEN domain.id IS NULL THEN 'domain_not_found'
        WHEN domain.id <> ALL ($2::text[]) THEN 'insufficient_scope'
        WHEN domain.status <> 'verified' THEN 'domain_not_verified'
      END) AS refusal
    FROM mail LEFT JOIN domains AS domain ON domain.org_id = $1 AND domain.name = mail.from_domain
  )`;

const JUDGE_EMAILS = `
  WITH mail AS (
    SELECT * FROM unnest($3::text[], $4::timestamptz[]) WITH ORDINALITY AS mail(from_domain, scheduled_at, position)
  ), ${JUDGED}
  SELECT position::int - 1 AS index, refusal FROM judged
  WHERE refusal IS NOT NULL ORDER BY refusal NOT IN ('past', 'far'), position LIMIT 1`;

/** A time inside JSON, which the driver does not convert. */
export const wireTime = (time: string): string =>
  `to_char((${time})::timestamptz(3) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

const ACCEPT_EMAILS = `
  WITH mail AS (
    SELECT * FROM unnest(
      $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::jsonb[], $9::jsonb[], $10::jsonb[], $11::jsonb[],
      $12::text[], $13::boolean[], $14::jsonb[], $15::json[], $16::text[], $17::text[], $18::timestamptz[],
      $19::text[], $20::bytea[], $21::text[], $22::bytea[], $23::integer[], $24::bytea[], $25::integer[]
    ) WITH ORDINALITY AS mail(
      id, event_id, batch_id, from_domain, "from", "to", cc, bcc, reply_to,
      subject, marketing, tags, headers, html, text, scheduled_at, key, fingerprint, traceparent, sealed,
      body_bytes, sealed_headers, allowance, position
    )
  ), ${JUDGED}, ${COUNT_AGAINST_QUOTA}, accepted AS MATERIALIZED (
    SELECT judged.*, ${BITS_OF_TAGS} AS tag_bits
    FROM judged WHERE refusal IS NULL AND (SELECT yes FROM quota_says)
  ), stored AS (
    INSERT INTO emails (id, org_id, batch_id, "from", "to", cc, bcc, reply_to, subject, marketing, tags, tag_bits,
                        headers, sealed_headers, status, created_at, scheduled_at, last_event_at, workflow_id)
    SELECT id, $1, batch_id, "from", "to", cc, bcc, reply_to, subject, marketing, tags, tag_bits,
           headers, sealed_headers, status, now(), scheduled_at, now(), id
    FROM accepted
  ), bodies AS (
    INSERT INTO email_bodies (email_id, html, text, sealed, body_bytes)
    SELECT id, html, text, sealed, body_bytes FROM accepted
  ), recorded AS (
    INSERT INTO email_events (email_id, id, type, created_at) SELECT id, event_id, 'email.' || status, now() FROM accepted
  ), enqueued AS (
    INSERT INTO outbox (message_id, action, traceparent) SELECT id, 'start', traceparent FROM accepted
  ), happened AS MATERIALIZED (
    SELECT event_id, $1 AS org_id, 'email.' || status AS type, now()::timestamptz(3) AS created_at, id AS message_id,
           jsonb_strip_nulls(jsonb_build_object('status', status, 'scheduledAt', ${wireTime('scheduled_at')})) AS data
    FROM accepted
  )${ENQUEUE_WEBHOOKS}, ${STORE_TAGS}, ${COUNT_ACCEPTED}, remembered AS (
    INSERT INTO idempotency_keys (org_id, key, fingerprint, answer)
    SELECT $1, key, fingerprint, json_build_object(
      'id', id, 'status', status, 'created_at', ${wireTime('now()')}, 'scheduled_at', ${wireTime('scheduled_at')})
    FROM accepted WHERE key IS NOT NULL
  )
  SELECT id, status, now()::timestamptz(3) AS created_at, scheduled_at::timestamptz(3),
         coalesce(refusal, CASE WHEN NOT (SELECT yes FROM quota_says) THEN 'quota_exceeded' END) AS refusal,
         EXISTS (SELECT FROM quota) AS has_quota
  FROM judged ORDER BY position`;

/** One email as the API shows it. */
export interface Email {
  id: string;
  batch_id: string | null;
  from: string;
  to: string[];
  cc: string[] | null;
  bcc: string[] | null;
  reply_to: string[] | null;
  subject: string;
  marketing: boolean;
  tags: Tag[];
  headers: Record<string, string>;
  status: EmailStatus;
  error: string | null;
  bounce_reason: BounceReason | null;
  created_at: string;
  scheduled_at: string | null;
  last_event_at: string;
  events: { type: string; created_at: string }[];
  attachments: (Attachment & { inline: boolean })[];
}

/** One email with its timeline, as of one instant. */
export async function findEmail(
  db: Db,
  contents: EmailContents,
  orgId: string,
  id: string,
): Promise<Email | undefined> {
  const { rows } = await db.query<Email & { sealed_headers: Buffer | null }>({
    name: 'find_email',
    text: `SELECT id, batch_id, "from", "to", cc, bcc, reply_to, subject, marketing, tags, headers, sealed_headers, status, error,
                  bounce_reason, created_at, scheduled_at, last_event_at,
                  (SELECT json_agg(json_build_object('type', type, 'created_at', ${wireTime('created_at')}) ORDER BY created_at, id)
                   FROM email_events WHERE email_id = emails.id) AS events,
                  ${ATTACHMENTS_OF_EMAIL('emails.id')} AS attachments
           FROM emails WHERE id = $1 AND org_id = $2`,
    values: [id, orgId],
  });
  const [row] = rows;
  if (!row) return undefined;
  const { sealed_headers, ...email } = row;
  return { ...email, headers: await contents.openHeaders(db, { ...email, org_id: orgId, sealed_headers }) };
}

/** Why an email or message could not be rescheduled or canceled. */
export type UnmovedReason = 'not_found' | 'past' | 'far' | 'not_scheduled';

/** Returns why an email could not be rescheduled or canceled. */
export async function whyUnmoved(
  db: Db,
  orgId: string,
  id: string,
  scheduledAt: string | null,
): Promise<UnmovedReason> {
  const { rows } = await db.query<{ time: 'past' | 'far' | null }>(
    `SELECT ${timeProblem('$3::timestamptz')} AS time FROM emails WHERE id = $1 AND org_id = $2`,
    [id, orgId, scheduledAt],
  );
  return rows[0] ? (rows[0].time ?? 'not_scheduled') : 'not_found';
}

/** The `from` of an email of an organization; undefined when there is no such email. It never changes. */
export async function senderOf(db: Db, orgId: string, id: string): Promise<string | undefined> {
  const { rows } = await db.query<{ from: string }>(`SELECT "from" FROM emails WHERE id = $1 AND org_id = $2`, [
    id,
    orgId,
  ]);
  return rows[0]?.from;
}
