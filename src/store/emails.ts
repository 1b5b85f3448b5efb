import type { Attachment } from '../domain/attachments.ts';
import type { BounceReason, EmailRequest, EmailStatus, Tag } from '../domain/email.ts';
import type { Transition } from '../domain/email-states.ts';
import { ATTACHMENTS_OF_EMAIL } from './attachments.ts';
import type { Once } from './idempotency.ts';
import type { Db } from './pool.ts';
import { BITS_OF_TAGS, STORE_TAGS } from './tags.ts';

/** What the database judges an email by. */
export interface SenderAndTime {
  /** The A-label of the domain in `from`. */
  from_domain: string;
  /** UTC with milliseconds, or null for at once. */
  scheduled_at: string | null;
}

/** A valid request on its way into the table, with what intake decided about it. */
export interface NewEmail extends EmailRequest, SenderAndTime {
  id: string;
  event_id: string;
  batch_id: string | null;
}

/** Why an email was not stored; the first two are told by the database's clock. */
export type Refusal = 'past' | 'far' | 'domain_not_found' | 'insufficient_scope' | 'domain_not_verified';

export interface Acceptance {
  id: string;
  status: 'queued' | 'scheduled';
  created_at: string;
  scheduled_at: string | null;
  refusal: Refusal | null;
}

/**
 * Stores emails with their bodies, first events and outbox rows, all or none, in one statement.
 * Nothing is stored when any answer holds a refusal. Answers are in the order of the emails.
 * @param domainIds the only domains the caller's key may send from, or null
 */
export async function acceptEmails(
  db: Db,
  orgId: string,
  domainIds: readonly string[] | null,
  emails: readonly NewEmail[],
): Promise<Acceptance[]> {
  const { rows } = await db.query<Acceptance>({
    name: 'accept_emails',
    text: ACCEPT_EMAILS,
    values: acceptValues(orgId, domainIds, emails),
  });
  return rows;
}

/**
 * Stores one email likewise, and remembers the answer under the request's key in the same statement.
 * @throws SQLSTATE 23505 when the key has been used meanwhile
 */
export async function acceptEmailOnce(
  db: Db,
  orgId: string,
  domainIds: readonly string[] | null,
  email: NewEmail,
  once: Once,
): Promise<Acceptance[]> {
  const { rows } = await db.query<Acceptance>({
    name: 'accept_email_once',
    text: ACCEPT_EMAIL_ONCE,
    values: [...acceptValues(orgId, domainIds, [email]), once.key, once.fingerprint],
  });
  return rows;
}

function acceptValues(orgId: string, domainIds: readonly string[] | null, emails: readonly NewEmail[]): unknown[] {
  const list = (addresses: string[] | null) => (addresses === null ? null : JSON.stringify(addresses));
  return [
    orgId,
    domainIds,
    emails.map((email) => email.id),
    emails.map((email) => email.event_id),
    emails.map((email) => email.batch_id),
    emails.map((email) => email.from_domain),
    emails.map((email) => email.from),
    emails.map((email) => list(email.to)),
    emails.map((email) => list(email.cc)),
    emails.map((email) => list(email.bcc)),
    emails.map((email) => list(email.reply_to)),
    emails.map((email) => email.subject),
    emails.map((email) => email.marketing),
    emails.map((email) => JSON.stringify(email.tags)),
    emails.map((email) => JSON.stringify(email.headers)),
    emails.map((email) => email.html),
    emails.map((email) => email.text),
    emails.map((email) => email.scheduled_at),
  ];
}

/**
 * The first refusal among many emails, or undefined: times before domains, since fields are looked at first.
 * Stores nothing. `index` counts from 0.
 */
export async function judgeEmails(
  db: Db,
  orgId: string,
  domainIds: readonly string[] | null,
  emails: readonly SenderAndTime[],
): Promise<{ index: number; refusal: Refusal } | undefined> {
  const { rows } = await db.query<{ index: number; refusal: Refusal }>({
    name: 'judge_emails',
    text: JUDGE_EMAILS,
    values: [
      orgId,
      domainIds,
      emails.map(({ from_domain }) => from_domain),
      emails.map(({ scheduled_at }) => scheduled_at),
    ],
  });
  return rows[0];
}

/** Whole hours: an interval of days would follow the session's daylight saving. */
const IN_TIME = `CASE WHEN scheduled_at <= now() THEN 'past' WHEN scheduled_at > now() + interval '720 hours' THEN 'far' END`;

/** What the database says about each row of `mail`, by its clock and its domains. */
const JUDGED = `
  judged AS MATERIALIZED (
    SELECT mail.*,
      CASE WHEN mail.scheduled_at IS NULL THEN 'queued' ELSE 'scheduled' END AS status,
      coalesce(${IN_TIME}, CASE
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

/** @param also further parts of the statement, each with a comma before it */
const accepting = (also = ''): string => `
  WITH mail AS (
    SELECT * FROM unnest(
      $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::jsonb[], $9::jsonb[], $10::jsonb[], $11::jsonb[],
      $12::text[], $13::boolean[], $14::jsonb[], $15::json[], $16::text[], $17::text[], $18::timestamptz[]
    ) WITH ORDINALITY AS mail(
      id, event_id, batch_id, from_domain, "from", "to", cc, bcc, reply_to,
      subject, marketing, tags, headers, html, text, scheduled_at, position
    )
  ), ${JUDGED}, accepted AS MATERIALIZED (
    SELECT judged.*, ${BITS_OF_TAGS} AS tag_bits
    FROM judged WHERE NOT EXISTS (SELECT FROM judged WHERE refusal IS NOT NULL)
  ), stored AS (
    INSERT INTO emails (id, org_id, batch_id, "from", "to", cc, bcc, reply_to, subject, marketing, tags, tag_bits,
                        headers, status, created_at, scheduled_at, last_event_at, workflow_id)
    SELECT id, $1, batch_id, "from", "to", cc, bcc, reply_to, subject, marketing, tags, tag_bits,
           headers, status, now(), scheduled_at, now(), id
    FROM accepted
  ), bodies AS (
    INSERT INTO email_bodies (email_id, html, text) SELECT id, html, text FROM accepted
  ), noted AS (
    INSERT INTO email_events (email_id, id, type, created_at) SELECT id, event_id, 'email.' || status, now() FROM accepted
  ), told AS (
    INSERT INTO outbox (message_id, action) SELECT id, 'start' FROM accepted
  ), ${STORE_TAGS}${also}
  SELECT id, status, now()::timestamptz(3) AS created_at, scheduled_at::timestamptz(3), refusal
  FROM judged ORDER BY position`;

const ACCEPT_EMAILS = accepting();
const ACCEPT_EMAIL_ONCE = accepting(`, remembered AS (
    INSERT INTO idempotency_keys (org_id, key, fingerprint, answer)
    SELECT $1, $19, $20, json_build_object(
      'id', id, 'status', status, 'created_at', ${wireTime('now()')}, 'scheduled_at', ${wireTime('scheduled_at')})
    FROM accepted
  )`);

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
export async function findEmail(db: Db, orgId: string, id: string): Promise<Email | undefined> {
  const { rows } = await db.query<Email>({
    name: 'find_email',
    text: `SELECT id, batch_id, "from", "to", cc, bcc, reply_to, subject, marketing, tags, headers, status, error,
                  bounce_reason, created_at, scheduled_at, last_event_at,
                  (SELECT json_agg(json_build_object('type', type, 'created_at', ${wireTime('created_at')}) ORDER BY created_at, id)
                   FROM email_events WHERE email_id = emails.id) AS events,
                  ${ATTACHMENTS_OF_EMAIL('emails.id')} AS attachments
           FROM emails WHERE id = $1 AND org_id = $2`,
    values: [id, orgId],
  });
  return rows[0];
}

/** What stands in the way of moving or canceling an email, found after a change that changed nothing. */
export async function whyUnmoved(
  db: Db,
  orgId: string,
  id: string,
  scheduledAt: string | null,
): Promise<'not_found' | 'past' | 'far' | 'not_scheduled'> {
  const { rows } = await db.query<{ time: 'past' | 'far' | null }>(
    `SELECT ${IN_TIME} AS time FROM (SELECT $3::timestamptz AS scheduled_at) AS wish
     WHERE EXISTS (SELECT FROM emails WHERE id = $1 AND org_id = $2)`,
    [id, orgId, scheduledAt],
  );
  return rows[0] ? (rows[0].time ?? 'not_scheduled') : 'not_found';
}

/** One email in a change that the projection makes to many. */
export interface ChangedEmail {
  id: string;
  event_id: string;
  error?: string;
  bounce_reason?: BounceReason;
  provider?: string;
  provider_message_id?: string;
  /** Of a provider's report: an email that has noted it before stays untouched. */
  dedupe_key?: string;
}

/**
 * Makes one transition on many emails and notes it in their timelines.
 * @param orgId when given, only that organization's emails
 * @returns ids whose status the transition applied to or was noted on
 */
export async function changeEmails(
  db: Db,
  transition: Transition,
  emails: readonly ChangedEmail[],
  orgId: string | null = null,
): Promise<string[]> {
  if (emails.length === 0) return [];
  const { rows } = await db.query<{ id: string }>({
    name: 'change_emails',
    text: CHANGE_EMAILS,
    values: [
      transition.to,
      transition.from,
      transition.noted,
      transition.event,
      orgId,
      emails.map((email) => email.id),
      emails.map((email) => email.event_id),
      emails.map((email) => email.error ?? null),
      emails.map((email) => email.bounce_reason ?? null),
      emails.map((email) => email.provider ?? null),
      emails.map((email) => email.provider_message_id ?? null),
      emails.map((email) => email.dedupe_key ?? null),
    ],
  });
  return rows.map((row) => row.id);
}

/**
 * Rows are locked in the order of their ids, so two changes of the same emails wait for each other, never in a circle.
 * The timeline is written before the email: what it has noted already, also by a change that has only just committed,
 * its unique index alone can tell.
 */
const CHANGE_EMAILS = `
  WITH found AS MATERIALIZED (
    SELECT email.id, email.batch_id, email.status, email.status = ANY ($2::text[]) AS moves, email.last_event_at,
           wish.event_id, wish.error, wish.bounce_reason, wish.provider, wish.provider_message_id, wish.dedupe_key
    FROM unnest($6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[])
           AS wish(id, event_id, error, bounce_reason, provider, provider_message_id, dedupe_key)
         JOIN emails AS email USING (id)
    WHERE ($5::text IS NULL OR email.org_id = $5) AND email.status = ANY ($2::text[] || $3::text[])
    ORDER BY email.id FOR UPDATE OF email
  ), noted AS (
    INSERT INTO email_events (email_id, id, type, created_at, dedupe_key)
    SELECT id, event_id, $4, greatest(last_event_at, clock_timestamp()), dedupe_key
    FROM found WHERE $4::text IS NOT NULL
    ON CONFLICT (email_id, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING
    RETURNING email_id, created_at
  ), latest AS (
    SELECT email_id, max(created_at) AS created_at FROM noted GROUP BY email_id
  ), counted AS (
    INSERT INTO batch_moves (batch_id, from_status, to_status, members, at)
    SELECT found.batch_id, found.status, $1, count(DISTINCT found.id), coalesce(max(latest.created_at), clock_timestamp())
    FROM found LEFT JOIN latest ON latest.email_id = found.id
    WHERE found.batch_id IS NOT NULL AND found.moves AND ($4::text IS NULL OR latest.email_id IS NOT NULL)
    GROUP BY found.batch_id, found.status
  )
  UPDATE emails AS email SET
    status              = CASE WHEN found.moves THEN $1 ELSE email.status END,
    error               = CASE WHEN found.moves THEN found.error ELSE email.error END,
    bounce_reason       = CASE WHEN found.moves THEN found.bounce_reason ELSE email.bounce_reason END,
    provider            = coalesce(found.provider, email.provider),
    provider_message_id = coalesce(found.provider_message_id, email.provider_message_id),
    last_event_at       = coalesce(latest.created_at, email.last_event_at)
  FROM found LEFT JOIN latest ON latest.email_id = found.id
  WHERE email.id = found.id AND ($4::text IS NULL OR latest.email_id IS NOT NULL)
  RETURNING email.id`;

/**
 * Gives a scheduled email another time, notes it and tells the relay, when its status is in `from` and the time is in
 * the future and near enough by the database's clock. From then on it is carried by a workflow of its own.
 * @returns the new time, or undefined when nothing was changed
 */
export async function moveEmail(
  db: Db,
  transition: Transition,
  orgId: string,
  id: string,
  eventId: string,
  scheduledAt: string,
): Promise<string | undefined> {
  const { rows } = await db.query<{ scheduled_at: string }>(
    `WITH changed AS (
       UPDATE emails SET
         status           = $4,
         scheduled_at     = $3,
         schedule_version = schedule_version + 1,
         workflow_id      = id,
         last_event_at    = greatest(last_event_at, clock_timestamp())
       WHERE id = $1 AND org_id = $2 AND status = ANY ($5::text[])
         AND $3::timestamptz > now() AND $3::timestamptz <= now() + interval '720 hours'
       RETURNING id, scheduled_at, last_event_at
     ), noted AS (
       INSERT INTO email_events (email_id, id, type, created_at) SELECT id, $6, $7, last_event_at FROM changed
     ), told AS (
       INSERT INTO outbox (message_id, action) SELECT id, 'reschedule' FROM changed
     )
     SELECT scheduled_at FROM changed`,
    [id, orgId, scheduledAt, transition.to, transition.from, eventId, transition.event],
  );
  return rows[0]?.scheduled_at;
}
