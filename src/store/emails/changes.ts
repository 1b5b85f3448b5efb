import type { BounceReason, EmailStatus } from '../../domain/email/email.ts';
import type { ReportClaim } from '../../domain/email/feedback.ts';
import { columns } from '../postgres/columns.ts';
import { type Db, queryRow, queryRows } from '../postgres/pool.ts';
import { fitsClaim } from './callbacks.ts';
import { timeProblem } from './emails.ts';

/** A change of one email, or of one of its recipients. */
export interface Change {
  readonly id: string;
  readonly error?: string;
  readonly bounce_reason?: BounceReason;
  readonly provider?: string;
  readonly provider_message_id?: string;
  /** The deduplication key of a provider's report: a report that is recorded already changes nothing. */
  readonly dedupe_key?: string;
  /** Whom of its recipients it is about, in lower case. */
  readonly recipient?: string;
  /** Of a click: where the link leads. */
  readonly link?: string;
  /** When it happened by the provider's clock, in milliseconds since 1970; only `sent` uses it. */
  readonly occurred_at?: number;
  /** Of a provider's callback: what it states about its message, which must fit the email. */
  readonly claim?: ReportClaim;
}

/** An email whose status is about to change. */
export interface ChangingEmail {
  readonly id: string;
  readonly org_id: string;
  readonly batch_id: string | null;
  readonly marketing: boolean;
  readonly status: EmailStatus;
  /** This and the next two are as Postgres writes times: they only go back to it. */
  readonly accepted_at: string;
  /** When it was due to be sent. */
  readonly due_at: string;
  readonly last_event_at: string;
}

/**
 * Locks emails in the order of their ids, which prevents deadlocks. Those that do not exist are missing.
 * @param orgId when given, only that organization's emails
 */
export async function lockChanging(
  client: Db,
  ids: readonly string[],
  orgId: string | null,
): Promise<Map<string, ChangingEmail>> {
  const rows = await queryRows<ChangingEmail>(client, {
    name: 'lock_changing_emails',
    text: `SELECT id, org_id, batch_id, marketing, status, created_at::text AS accepted_at,
                  coalesce(scheduled_at, created_at)::text AS due_at, last_event_at::text
           FROM emails WHERE id = ANY ($1) AND ($2::text IS NULL OR org_id = $2) ORDER BY id FOR UPDATE`,
    values: [ids, orgId],
  });
  return new Map(rows.map((row) => [row.id, row]));
}

/** What a provider's callback states about a recipient of an email. */
export interface ClaimedReport {
  readonly id: string;
  readonly event_id: string;
  readonly recipient: string | undefined;
  readonly claim: ReportClaim;
}

/** @returns the event ids of reports whose claim does not fit their email */
export async function findUnfitting(client: Db, reports: readonly ClaimedReport[]): Promise<Set<string>> {
  if (reports.length === 0) return new Set();
  const rows = await queryRows<{ event_id: string }>(client, {
    name: 'find_unfitting_reports',
    text: `SELECT report.event_id
           FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::boolean[])
                  AS report(email_id, event_id, recipient, message_id, is_signed)
                JOIN emails ON emails.id = report.email_id
           WHERE emails.id = ANY ($1) AND NOT coalesce(${CLAIM_FITS}, false)`,
    values: [
      ...columns(reports, 'id', 'event_id', 'recipient'),
      reports.map(({ claim }) => claim.messageId),
      reports.map(({ claim }) => claim.isSigned),
    ],
  });
  return new Set(rows.map(({ event_id }) => event_id));
}

const CLAIM_FITS = fitsClaim({
  recipient: 'report.recipient',
  messageId: 'report.message_id',
  isSigned: 'report.is_signed',
});

/** An entry of a timeline. */
export interface EmailEvent {
  readonly id: string;
  readonly email_id: string;
  /** An event whose key the timeline has already is not recorded again. */
  readonly dedupe_key: string | undefined;
  /** Whom of its recipients it is about, in lower case. */
  readonly recipient: string | undefined;
  /** The time of the email's last event before it. */
  readonly last_event_at: string;
  /** When it happened by the provider's clock, in milliseconds since 1970. */
  readonly occurred_at: number | undefined;
}

/** Later than all before, so that a timeline has one order, whichever process the events come from. */
const NEXT_EVENT_AT = `greatest(last_event_at + interval '1 millisecond', clock_timestamp())`;

/**
 * The provider's time where it is known, else now; but after what the service itself did before, and before the provider's
 * first report, which may be recorded earlier than the answer to the send. Only reports and answers have a dedupe_key.
 */
const SENT_AT = `(
    SELECT greatest(max(created_at) FILTER (WHERE dedupe_key IS NULL OR type = $1) + interval '1 millisecond',
                    least(to_timestamp(occurred_at / 1000), clock_timestamp(),
                          min(created_at) FILTER (WHERE dedupe_key IS NOT NULL AND type <> $1) - interval '1 millisecond'))
    FROM email_events WHERE email_events.email_id = event.email_id)`;

/**
 * Adds events of one type to the timelines of locked emails.
 * @returns the time of each event that was added, by its id
 */
export async function insertEmailEvents(
  client: Db,
  type: string,
  events: readonly EmailEvent[],
): Promise<Map<string, string>> {
  if (events.length === 0) return new Map();
  const isSent = type === 'email.sent';
  const rows = await queryRows<{ id: string; created_at: string }>(client, {
    name: isSent ? 'insert_sent_events' : 'insert_email_events',
    text: `INSERT INTO email_events (email_id, id, type, created_at, dedupe_key, recipient)
           SELECT email_id, id, $1, ${isSent ? SENT_AT : NEXT_EVENT_AT}, dedupe_key, recipient
           FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::float8[])
             AS event(email_id, id, dedupe_key, recipient, last_event_at, occurred_at)
           ON CONFLICT (email_id, dedupe_key) DO NOTHING
           RETURNING id, created_at`,
    values: [type, ...columns(events, 'email_id', 'id', 'dedupe_key', 'recipient', 'last_event_at', 'occurred_at')],
  });
  return new Map(rows.map(({ id, created_at }) => [id, created_at]));
}

/** What a change writes to the row of one email. */
export interface EmailUpdate {
  readonly id: string;
  /** The new status, with its error and bounce reason; without it all three stay. */
  readonly status: EmailStatus | undefined;
  readonly error: string | undefined;
  readonly bounce_reason: BounceReason | undefined;
  /** Undefined if it stays, as the next two. */
  readonly provider: string | undefined;
  readonly provider_message_id: string | undefined;
  readonly last_event_at: string | undefined;
}

/** Updates the rows of locked emails. */
export async function updateEmails(client: Db, updates: readonly EmailUpdate[]): Promise<void> {
  if (updates.length === 0) return;
  await client.query({
    name: 'update_emails',
    text: `UPDATE emails AS email SET
             status              = coalesce(input.status, email.status),
             error               = CASE WHEN input.status IS NULL THEN email.error ELSE input.error END,
             bounce_reason       = CASE WHEN input.status IS NULL THEN email.bounce_reason ELSE input.bounce_reason END,
             provider            = coalesce(input.provider, email.provider),
             provider_message_id = coalesce(input.provider_message_id, email.provider_message_id),
             last_event_at       = greatest(input.last_event_at, email.last_event_at)
           FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[])
             AS input(id, status, error, bounce_reason, provider, provider_message_id, last_event_at)
           WHERE email.id = input.id AND email.id = ANY ($1)`,
    values: [
      ...columns(updates, 'id', 'status', 'error', 'bounce_reason'),
      ...columns(updates, 'provider', 'provider_message_id', 'last_event_at'),
    ],
  });
}

/**
 * Gives a locked email another time, at most 30 days ahead by the database's clock. From then on its own workflow delivers it.
 * @returns the time as it is stored; undefined if it is not allowed
 */
export async function moveEmail(client: Db, id: string, scheduledAt: string): Promise<string | undefined> {
  const moved = await queryRow<{ scheduled_at: string }>(client, {
    name: 'move_email',
    text: `UPDATE emails SET scheduled_at = $2, schedule_version = schedule_version + 1, workflow_id = id
           WHERE id = $1 AND ${timeProblem('$2::timestamptz')} IS NULL RETURNING scheduled_at`,
    values: [id, scheduledAt],
  });
  return moved?.scheduled_at;
}
