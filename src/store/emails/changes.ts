import type { BounceReason, EmailStatus } from '../../domain/email/email.ts';
import type { ReportClaim } from '../../domain/email/feedback.ts';
import { REPORTED, type Transition } from '../../domain/email/states.ts';
import type { Change as AuditChange } from '../accounts/audit.ts';
import { COUNT_CHANGED } from './hours.ts';
import { fitsClaim } from './callbacks.ts';
import { type Db, queryRows } from '../postgres/pool.ts';
import { timeProblem, wireTime } from './emails.ts';
import { ENQUEUE_WEBHOOKS } from '../webhooks/events.ts';
import { columns } from '../postgres/columns.ts';

/** One email in a change that the projection makes to many. */
export interface ChangedEmail {
  id: string;
  event_id: string;
  error?: string;
  bounce_reason?: BounceReason;
  provider?: string;
  provider_message_id?: string;
  /** The deduplication key of a provider's report: a report that is recorded already changes nothing. */
  dedupe_key?: string;
  /** Whom of its recipients it is about, in lower case. */
  recipient?: string;
  /** Of a click: where the link leads. */
  link?: string;
  /** When it happened by the provider's clock, in milliseconds since 1970; only `sent` uses it. */
  occurred_at?: number;
  /** Of a provider's callback: what it states about its message, which must fit the email. */
  claim?: ReportClaim;
}

/** An email that was changed, or was refused because a callback's claim does not fit it. */
export interface ChangeResult {
  readonly id: string;
  readonly event_id: string;
  readonly org_id: string;
  readonly marketing: boolean;
  readonly is_refused: boolean;
}

/**
 * Applies one transition to emails, adds it to their timelines and recipients, and enqueues webhooks. An email may occur
 * several times, for several recipients.
 * @param orgId when given, only that organization's emails
 * @returns the emails that were changed or got an event, and those that were refused
 */
export async function changeEmails(
  db: Db,
  transition: Transition,
  emails: readonly ChangedEmail[],
  orgId: string | null = null,
): Promise<ChangeResult[]> {
  if (emails.length === 0) return [];
  return queryRows(db, {
    name: 'change_emails',
    text: CHANGE_EMAILS,
    values: [
      transition.to,
      transition.from,
      transition.noted,
      transition.event,
      orgId,
      ...columns(emails, 'id', 'event_id', 'error', 'bounce_reason', 'provider', 'provider_message_id'),
      ...columns(emails, 'dedupe_key', 'recipient', 'link'),
      RANKS,
      emails.map(({ claim }) => claim?.messageId ?? null),
      emails.map(({ claim }) => claim?.isSigned ?? null),
      emails.map(({ occurred_at }) => occurred_at ?? null),
    ],
  });
}

/** Later than all before, so that a timeline has one order, whichever process the events come from. */
const NEXT_EVENT_AT = `greatest(last_event_at + interval '1 millisecond', clock_timestamp())`;

/**
 * The provider's time where it is known, else now; but after what the service itself did before, and before the provider's
 * first report, which may be recorded earlier than the answer to the send. Only reports and answers have a dedupe_key.
 */
const SENT_AT = `(
      SELECT greatest(max(created_at) FILTER (WHERE dedupe_key IS NULL OR type = $4) + interval '1 millisecond',
                      least(to_timestamp(occurred_at / 1000), clock_timestamp(),
                            min(created_at) FILTER (WHERE dedupe_key IS NOT NULL AND type <> $4) - interval '1 millisecond'))
      FROM email_events WHERE email_id = found.id)`;

const CLAIM_FITS = fitsClaim({
  recipient: 'input.recipient',
  messageId: 'input.claimed_message_id',
  isSigned: 'input.is_signed',
});

/** A recipient's statuses in ascending order: a report never lowers the status. */
const RANKS = ['queued', 'failed', ...REPORTED] satisfies EmailStatus[];

/**
 * Rows are locked in the order of their ids, which prevents deadlocks. Each is looked up alone (see PLANNER in pool.ts), and
 * its event's time in a map, because a join would compare all pairs. The timeline is written before the email: only its
 * unique index detects an event that a concurrent change has just committed.
 */
const CHANGE_EMAILS = `
  WITH locked AS MATERIALIZED (
    SELECT email.*, email.status = ANY ($2::text[]) AS moves, input.*
    FROM (
      SELECT * FROM unnest($6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[],
                           $16::text[], $17::boolean[], $18::float8[])
        AS input(email_id, event_id, error, bounce_reason, provider, provider_message_id, dedupe_key, recipient, link,
                claimed_message_id, is_signed, occurred_at)
      ORDER BY email_id COLLATE "C"
    ) AS input CROSS JOIN LATERAL (
      SELECT id, org_id, batch_id, marketing, status, last_event_at, created_at AS accepted_at,
             coalesce(scheduled_at, created_at) AS due_at,
             CASE WHEN input.claimed_message_id IS NULL THEN false ELSE NOT coalesce(${CLAIM_FITS}, false) END AS is_refused
      FROM emails WHERE id = input.email_id FOR UPDATE
    ) AS email
    WHERE ($5::text IS NULL OR email.org_id = $5)
  ), found AS MATERIALIZED (
    SELECT * FROM locked WHERE NOT is_refused AND status = ANY ($2::text[] || $3::text[])
  ), recorded AS (
    INSERT INTO email_events (email_id, id, type, created_at, dedupe_key, recipient)
    SELECT id, event_id, $4, CASE WHEN $1 = 'sent' THEN ${SENT_AT} ELSE ${NEXT_EVENT_AT} END, dedupe_key, recipient
    FROM found WHERE $4::text IS NOT NULL
    ON CONFLICT (email_id, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING
    RETURNING id AS event_id, created_at
  ), times AS MATERIALIZED (
    SELECT jsonb_object_agg(event_id, created_at) AS of_event FROM recorded
  ), changed AS MATERIALIZED (
    SELECT found.*, (of_event ->> event_id)::timestamptz AS created_at FROM found CROSS JOIN times
    WHERE $4::text IS NULL OR of_event ? event_id
  ), first AS MATERIALIZED (
    SELECT DISTINCT ON (id) *, max(created_at) OVER (PARTITION BY id) AS latest_at FROM changed ORDER BY id, created_at
  ), ${COUNT_CHANGED}, counted AS (
    INSERT INTO batch_moves (batch_id, from_status, to_status, members, at)
    SELECT batch_id, status, $1, count(DISTINCT id), coalesce(max(created_at), clock_timestamp())
    FROM changed WHERE batch_id IS NOT NULL AND moves GROUP BY batch_id, status
  ), known AS (
    INSERT INTO email_recipients AS known (email_id, recipient, status, error, bounce_reason)
    SELECT DISTINCT ON (id, recipient) id, recipient, $1, error, bounce_reason
    FROM changed WHERE recipient IS NOT NULL AND $1::text IS NOT NULL ORDER BY id, recipient
    ON CONFLICT (email_id, recipient) DO UPDATE
    SET status = EXCLUDED.status, error = EXCLUDED.error, bounce_reason = EXCLUDED.bounce_reason, changed_at = EXCLUDED.changed_at
    WHERE coalesce(array_position($15::text[], known.status), 0) < array_position($15::text[], EXCLUDED.status)
  ), happened AS MATERIALIZED (
    SELECT event_id, org_id, $4::text AS type, created_at, id AS message_id,
           jsonb_strip_nulls(jsonb_build_object(
             'status', CASE WHEN moves THEN $1 ELSE status END, 'recipient', recipient, 'error', error,
             'bounceReason', bounce_reason, 'click', CASE WHEN link IS NOT NULL THEN jsonb_build_object('link', link) END
           )) AS data
    FROM changed WHERE $4::text IS NOT NULL
  )${ENQUEUE_WEBHOOKS}, moved AS (
    UPDATE emails AS email SET
      status              = CASE WHEN first.moves THEN $1 ELSE email.status END,
      error               = CASE WHEN first.moves THEN first.error ELSE email.error END,
      bounce_reason       = CASE WHEN first.moves THEN first.bounce_reason ELSE email.bounce_reason END,
      provider            = coalesce(first.provider, email.provider),
      provider_message_id = coalesce(first.provider_message_id, email.provider_message_id),
      last_event_at       = greatest(first.latest_at, email.last_event_at)
    FROM first WHERE email.id = first.id
  )
  SELECT id, event_id, org_id, marketing, false AS is_refused FROM changed
  UNION ALL SELECT id, event_id, org_id, marketing, true FROM locked WHERE is_refused`;

/** An entry of the audit log that is written with the change. */
export type MoveAudit = { readonly id: string } & Pick<AuditChange, 'actor_kind' | 'actor_id'>;

/**
 * Reschedules an email if its status is in `from` and the time is at most 30 days ahead by the database's clock. From then on
 * its own workflow delivers it.
 * @returns the new time, or undefined when nothing was changed
 */
export async function moveEmail(
  db: Db,
  transition: Transition,
  orgId: string,
  id: string,
  eventId: string,
  scheduledAt: string,
  audit: MoveAudit | null = null,
): Promise<string | undefined> {
  const { rows } = await db.query<{ scheduled_at: string }>(
    `WITH changed AS (
       UPDATE emails SET
         status           = $4,
         scheduled_at     = $3,
         schedule_version = schedule_version + 1,
         workflow_id      = id,
         last_event_at    = ${NEXT_EVENT_AT}
       WHERE id = $1 AND org_id = $2 AND status = ANY ($5::text[])
         AND ${timeProblem('$3::timestamptz')} IS NULL
       RETURNING id, org_id, status, scheduled_at, last_event_at
     ), recorded AS (
       INSERT INTO email_events (email_id, id, type, created_at) SELECT id, $6, $7, last_event_at FROM changed
     ), enqueued AS (
       INSERT INTO outbox (message_id, action) SELECT id, 'reschedule' FROM changed
     ), happened AS MATERIALIZED (
       SELECT $6 AS event_id, org_id, $7 AS type, last_event_at AS created_at, id AS message_id,
              jsonb_build_object('status', status, 'scheduledAt', ${wireTime('scheduled_at')}) AS data
       FROM changed
     ), audited AS (
       INSERT INTO audit_log (id, org_id, actor_kind, actor_id, action, target, detail)
       SELECT $8, org_id, $9, $10, 'emails.reschedule', id, jsonb_build_object('scheduled_at', scheduled_at)
       FROM changed WHERE $8::text IS NOT NULL
     )${ENQUEUE_WEBHOOKS}
     SELECT scheduled_at FROM changed`,
    [
      id,
      orgId,
      scheduledAt,
      transition.to,
      transition.from,
      eventId,
      transition.event,
      audit?.id ?? null,
      audit?.actor_kind ?? null,
      audit?.actor_id ?? null,
    ],
  );
  return rows[0]?.scheduled_at;
}
