import type { BounceReason, EmailStatus } from '../../domain/email/email.ts';
import type { ReportEvidence } from '../../domain/email/feedback.ts';
import type { EmailEventType } from '../../domain/event-types.ts';
import type { EventDetail } from '../../domain/event-detail.ts';
import type { StateSet } from '../../domain/statistics.ts';
import { columns } from '../postgres/columns.ts';
import { type Db, execute, queryRow, queryRows } from '../postgres/pool.ts';
import type { CountedMessage } from '../statistics/additions.ts';
import { matchesEvidence } from './callbacks.ts';
import { timeProblem } from './emails.ts';

/** A change of one email, or of one of its recipients. */
export interface EmailChangeInput {
  readonly id: string;
  readonly error?: string;
  readonly bounce_reason?: BounceReason;
  readonly provider?: string;
  readonly provider_message_id?: string;
  /** The deduplication key of a provider's report: a report that is recorded already changes nothing. */
  readonly dedupe_key?: string;
  /** The recipient that it concerns, in lower case. */
  readonly recipient?: string;
  /** For a click: the target of the link. */
  readonly link?: string;
  /** When it happened by the provider's clock, in milliseconds since 1970; only `sent` uses it. */
  readonly occurred_at?: number;
  /** The evidence of a provider's callback, which must match the email. */
  readonly evidence?: ReportEvidence;
}

/** An email whose status is about to change. */
export interface ChangingEmail extends CountedMessage {
  readonly id: string;
  readonly batch_id: string | null;
  readonly marketing: boolean;
  /** True if it is sent once, to one address: the state of its recipient is its own. */
  readonly has_one_recipient: boolean;
  readonly status: EmailStatus;
  /** The time of an event that is added now, in milliseconds since 1970. */
  readonly next_event_at: number;
  /** The reason of its first bounce. */
  readonly bounced_for: BounceReason | null;
  readonly from: string;
}

/** SQL of the next event's time, after all earlier events: a timeline then has one order although several processes write it. */
const NEXT_EVENT_AT = `(extract(epoch FROM greatest(last_event_at + interval '1 millisecond', clock_timestamp())::timestamptz(3)) * 1000)::float8`;

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
                  NOT marketing AND jsonb_array_length("to") = 1 AND cc IS NULL AND bcc IS NULL AS has_one_recipient,
                  coalesce(scheduled_at, created_at)::text AS due_at, ${NEXT_EVENT_AT} AS next_event_at,
                  reached, bounced_for, "from", key_id, nullif(tags, '[]')::text AS tags
           FROM emails WHERE id = ANY ($1) AND ($2::text IS NULL OR org_id = $2) ORDER BY id FOR UPDATE`,
    values: [ids, orgId],
  });
  return new Map(rows.map((row) => [row.id, row]));
}

/** A change whose effect depends on the email's timeline or content. */
export interface ReportedChange {
  readonly event_id: string;
  readonly email_id: string;
  readonly recipient: string | undefined;
  readonly dedupe_key: string | undefined;
  /** True if it reports that the email was sent. */
  readonly is_sent: boolean;
  readonly occurred_at: number | undefined;
  /** Undefined if it is not from a callback. */
  readonly evidence: ReportEvidence | undefined;
}

/** The comparison of a reported change with its locked email and timeline. */
export interface CheckedReport {
  readonly event_id: string;
  /** True if the evidence matches the email, or there is none. */
  readonly fits: boolean;
  /** True if the timeline has an event with its deduplication key. */
  readonly is_recorded: boolean;
  /** The time of the event if the email was sent; otherwise null. */
  readonly sent_at: string | null;
}

/**
 * SQL of the time of the event `sent`: the provider's time if it is known, otherwise now. It is moved after our own earlier events
 * and before the provider's first report, which may be recorded before the response to the send. Only reports and responses have
 * a dedupe_key.
 */
const SENT_AT = `(
    SELECT greatest(greatest(emails.created_at, max(created_at) FILTER (WHERE dedupe_key IS NULL OR type = 'email.sent'))
                      + interval '1 millisecond',
                    least(to_timestamp(report.occurred_at / 1000), clock_timestamp(),
                          min(created_at) FILTER (WHERE dedupe_key IS NOT NULL AND type <> 'email.sent') - interval '1 millisecond'))
    FROM email_events WHERE email_events.email_id = report.email_id)`;

const MATCHES_EVIDENCE = matchesEvidence({
  recipient: 'report.recipient',
  messageId: 'report.message_id',
  isSigned: 'report.is_signed',
});

/**
 * Compares reported changes with locked emails and their timelines. Those of emails that do not exist are missing. It must see
 * what the last holder of the locks wrote: send it behind `lockChanging`, so that it has a later snapshot. OFFSET 0 prevents a
 * plan that reads all timelines.
 */
export async function checkReports(client: Db, reports: readonly ReportedChange[]): Promise<CheckedReport[]> {
  if (reports.length === 0) return [];
  return queryRows(client, {
    name: 'check_reports',
    text: `SELECT event_id, is_signed IS NULL OR coalesce(${MATCHES_EVIDENCE}, false) AS fits,
                  EXISTS (
                    SELECT FROM email_events AS known
                    WHERE known.email_id = report.email_id AND known.dedupe_key = report.dedupe_key OFFSET 0
                  ) AS is_recorded,
                  CASE WHEN is_sent THEN ${SENT_AT}::timestamptz(3) END AS sent_at
           FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::boolean[], $6::float8[], $7::text[], $8::boolean[])
                  AS report(event_id, email_id, recipient, dedupe_key, is_sent, occurred_at, message_id, is_signed)
                JOIN emails ON emails.id = report.email_id
           WHERE emails.id = ANY ($2)`,
    values: [
      ...columns(reports, 'event_id', 'email_id', 'recipient', 'dedupe_key', 'is_sent', 'occurred_at'),
      reports.map(({ evidence }) => evidence?.messageId),
      reports.map(({ evidence }) => evidence?.isSigned),
    ],
  });
}

/** One change of a locked email. */
export interface RecordedChange {
  /** As it was locked. */
  readonly email: ChangingEmail;
  readonly input: EmailChangeInput;
  readonly event_id: string;
  /** The type of its entry in the timeline; null adds none. */
  readonly event: EmailEventType | null;
  /** The time of the entry; undefined without one. */
  readonly at: string | undefined;
  /** Further fields of the entry; undefined without any. */
  readonly detail: EventDetail | undefined;
  readonly from_status: EmailStatus;
  /** Equal to `from_status` if the status does not change. */
  readonly to_status: EmailStatus;
}

/** The update of one email's row. */
export interface EmailUpdate {
  readonly id: string;
  /** The new status, with its error and bounce reason; without it all three stay. */
  readonly status: EmailStatus | undefined;
  readonly error: string | undefined;
  readonly bounce_reason: BounceReason | undefined;
  /** Undefined leaves the column unchanged, as for the fields below. */
  readonly provider: string | undefined;
  readonly provider_message_id: string | undefined;
  readonly last_event_at: string | undefined;
  readonly reached?: StateSet;
  readonly bounced_for?: BounceReason | null;
}

/**
 * Adds changes to the timelines of locked emails.
 * @param publishing organizations with webhook endpoints; only events of their emails keep their ids
 */
export async function insertEmailEvents(
  client: Db,
  changes: readonly RecordedChange[],
  publishing: ReadonlySet<string>,
): Promise<void> {
  const entered = changes.filter(({ event }) => event !== null);
  if (entered.length === 0) return;
  const inputs = entered.map(({ input }) => input);
  await execute(client, {
    name: 'insert_email_events',
    text: `INSERT INTO email_events (email_id, id, type, created_at, dedupe_key, recipient, detail)
           SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::text[], $7::jsonb[])`,
    values: [
      ...columns(inputs, 'id'),
      entered.map(({ email, event_id }) => (publishing.has(email.org_id) ? event_id : null)),
      ...columns(entered, 'event', 'at'),
      ...columns(inputs, 'dedupe_key'),
      entered.map(({ email, input }) => (email.has_one_recipient ? null : input.recipient)),
      ...columns(entered, 'detail'),
    ],
  });
}

/** Updates the rows of locked emails. */
export async function updateEmails(client: Db, updates: readonly EmailUpdate[]): Promise<void> {
  if (updates.length === 0) return;
  await execute(client, {
    name: 'update_emails',
    text: `UPDATE emails AS email SET
             status              = coalesce(input.status, email.status),
             error               = CASE WHEN input.status IS NULL THEN email.error ELSE input.error END,
             bounce_reason       = CASE WHEN input.status IS NULL THEN email.bounce_reason ELSE input.bounce_reason END,
             provider            = coalesce(input.provider, email.provider),
             provider_message_id = coalesce(input.provider_message_id, email.provider_message_id),
             last_event_at       = greatest(input.last_event_at, email.last_event_at),
             reached             = coalesce(input.reached, email.reached),
             bounced_for         = coalesce(input.bounced_for, email.bounced_for)
           FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[],
                       $8::smallint[], $9::text[])
             AS input(id, status, error, bounce_reason, provider, provider_message_id, last_event_at, reached, bounced_for)
           WHERE email.id = input.id AND email.id = ANY ($1)`,
    values: [
      ...columns(updates, 'id', 'status', 'error', 'bounce_reason'),
      ...columns(updates, 'provider', 'provider_message_id', 'last_event_at', 'reached', 'bounced_for'),
    ],
  });
}

/** The times of an email or message before and after it was rescheduled. */
export interface Rescheduled {
  readonly previous: string;
  readonly scheduled_at: string;
}

/**
 * Gives a locked email another time, at most 30 days ahead by the database's clock. From then on its own workflow delivers it.
 * @returns the times as they are stored; undefined if the new one is not allowed
 */
export async function moveEmail(client: Db, id: string, scheduledAt: string): Promise<Rescheduled | undefined> {
  return queryRow(client, {
    name: 'move_email',
    text: `UPDATE emails SET scheduled_at = $2, schedule_version = emails.schedule_version + 1, workflow_id = emails.id
           FROM (SELECT scheduled_at AS previous FROM emails WHERE id = $1) AS before
           WHERE id = $1 AND ${timeProblem('$2::timestamptz')} IS NULL RETURNING emails.scheduled_at, before.previous`,
    values: [id, scheduledAt],
  });
}
