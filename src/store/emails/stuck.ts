import { lockRows } from './attempts.ts';
import { IS_OPEN } from './recipients.ts';
import { type Db, execute, inTransaction, queryColumn, queryRows } from '../postgres/pool.ts';
import type { EmailProviderName } from '../../domain/email/email.ts';
import { SUSPENDED_ORGANIZATIONS } from '../accounts/suspension.ts';
import { EMAIL_MAY_HAVE_FORGOTTEN, FORGOTTEN, insertAmbiguousAttempts } from '../upkeep/forgotten.ts';

/** An email that its provider accepted and whose final status is overdue. */
export interface UnreportedEmail {
  readonly id: string;
  /** The provider's ids: of the email, or of each copy of a marketing email. */
  readonly message_ids: readonly string[];
}

/**
 * Emails that Postmark, the only provider that can be queried, accepted more than 15 minutes ago without a final report.
 * Emails that were never queried come first. After three days, which cover a weekend, Postmark is not queried again: it has
 * ended its own retries and callbacks long before.
 */
export function findUnreported(db: Db, limit: number): Promise<UnreportedEmail[]> {
  return queryRows(db, {
    name: 'find_unreported',
    text: `WITH unreported AS (
             (SELECT id, provider_message_id FROM emails
              WHERE ${UNREPORTED} AND look_at IS NULL
                AND last_event_at <= now() - interval '15 minutes' AND last_event_at > now() - interval '72 hours'
              ORDER BY look_at, last_event_at LIMIT $1)
             UNION ALL
             (SELECT id, provider_message_id FROM emails WHERE ${UNREPORTED} AND look_at <= now()
              ORDER BY look_at, last_event_at LIMIT $1)
           )
           SELECT id, ARRAY(
             SELECT provider_message_id WHERE provider_message_id IS NOT NULL
             UNION
             SELECT copy.provider_message_id FROM email_recipients AS copy
             WHERE copy.email_id = unreported.id AND copy.provider_message_id IS NOT NULL
           ) AS message_ids
           FROM unreported LIMIT $1`,
    values: [limit],
  });
}

/** The condition of the index emails_unreported. */
const UNREPORTED = `status IN ('sent', 'delivery_delayed') AND provider = 'postmark'`;

/** An overdue email. */
export interface OverdueEmail {
  readonly id: string;
  /** The workflow that delivers it, or did. */
  readonly workflow_id: string;
}

/**
 * Finds emails, and marketing emails with unsent copies, that have been due for more than ten minutes. Leaves out those that an
 * outbox row concerns, and those of suspended organizations, which wait on purpose.
 */
export function findOverdue(db: Db, limit: number): Promise<OverdueEmail[]> {
  return besideOutbox(db, (client) => queryRows(client, { text: FIND_OVERDUE, values: [limit] }));
}

const NOT_IN_OUTBOX = `id NOT IN (SELECT message_id FROM outbox) AND workflow_id NOT IN (SELECT message_id FROM outbox)`;
/** True for an email that is due for a check by upkeep and that no outbox row concerns. */
const NEEDS_CHECK = `(look_at IS NULL OR look_at <= now()) AND ${NOT_IN_OUTBOX}`;

const FIND_OVERDUE = `SELECT queued.id, queued.workflow_id
  FROM organizations CROSS JOIN LATERAL (
    SELECT id, workflow_id FROM emails
    WHERE org_id = organizations.id AND status = 'queued' AND created_at <= now() - interval '10 minutes'
      AND (scheduled_at IS NULL OR scheduled_at <= now() - interval '10 minutes') AND ${NEEDS_CHECK}
    ORDER BY created_at, id LIMIT $1
  ) AS queued
  WHERE organizations.suspended_at IS NULL
  UNION ALL
  (SELECT id, workflow_id FROM emails
   WHERE status = 'scheduled' AND scheduled_at <= now() - interval '10 minutes' AND ${NEEDS_CHECK}
     AND org_id <> ALL (${SUSPENDED_ORGANIZATIONS})
   ORDER BY scheduled_at LIMIT $1)
  UNION ALL
  (SELECT email.id, email.workflow_id
   FROM (SELECT DISTINCT email_id FROM email_recipients WHERE status = 'queued') AS unsent CROSS JOIN LATERAL (
     SELECT id, workflow_id FROM emails
     WHERE id = unsent.email_id AND status NOT IN ('queued', 'scheduled')
       AND created_at <= now() - interval '10 minutes'
       AND (scheduled_at IS NULL OR scheduled_at <= now() - interval '10 minutes') AND ${NEEDS_CHECK}
       AND org_id <> ALL (${SUSPENDED_ORGANIZATIONS})
   ) AS email
   LIMIT $1)
  LIMIT $1`;

/**
 * Plans and runs a statement with memory for a hash table of a million outbox rows, as there may be after Temporal was away. With
 * less, NOT IN reads the outbox for each email.
 */
function besideOutbox<T>(db: Db, work: (client: Db) => Promise<T>): Promise<T> {
  return inTransaction(db, async (client) => {
    await execute(client, { text: `SELECT set_config('work_mem', $1, true)`, values: ['64MB'] });
    return work(client);
  });
}

/** Scheduled emails from shortly before they are due until upkeep's search for overdue ones finds them. */
const ALMOST_DUE = `status = 'scheduled' AND scheduled_at > now() - interval '10 minutes'
  AND scheduled_at <= now() + interval '90 seconds'`;

/**
 * SQL: true for an email that is so late that its workflow should have claimed it, unless it waits on purpose. With the interval of
 * upkeep, it leaves within a minute of its time.
 */
const SHOULD_BE_CLAIMED = `(scheduled_at <= now() - interval '20 seconds' AND (look_at IS NULL OR look_at <= now())
  AND org_id <> ALL (${SUSPENDED_ORGANIZATIONS}))`;

/** A workflow that delivers emails which are almost due. */
export interface AlmostDueWorkflow {
  readonly workflow_id: string;
  /** True if it should have claimed an email of its by now. */
  readonly isLate: boolean;
}

/**
 * Finds workflows of emails that are due within the next 90 seconds or are late, in the order of their ids, after a certain one.
 * Leaves out those with an outbox row.
 */
export function findAlmostDueWorkflows(db: Db, after: string, limit: number): Promise<AlmostDueWorkflow[]> {
  return besideOutbox(db, (client) =>
    queryRows(client, {
      text: `SELECT workflow_id, bool_or${SHOULD_BE_CLAIMED} AS "isLate" FROM emails
             WHERE ${ALMOST_DUE} AND workflow_id > $1 AND ${NOT_IN_OUTBOX}
             GROUP BY workflow_id ORDER BY workflow_id LIMIT $2`,
      values: [after, limit],
    }),
  );
}

/**
 * The emails of one workflow that are due within the next 90 seconds or are late.
 * @param areLate only those that it should have claimed by now
 */
export function findAlmostDue(db: Db, workflowId: string, areLate: boolean): Promise<string[]> {
  return queryColumn(db, {
    name: 'find_almost_due',
    text: `SELECT id FROM emails WHERE ${ALMOST_DUE} AND workflow_id = $1 AND (NOT $2 OR ${SHOULD_BE_CLAIMED}) ORDER BY id`,
    values: [workflowId, areLate],
  });
}

/** What happens to an email that may have been sent, without an attempt on record. */
export interface LookUp {
  /** The provider that may have it. */
  readonly provider: EmailProviderName;
  /** False if AMBIGUOUS_SEND decides instead. It does not for an email before its time, which is unlikely to have been sent. */
  readonly canBeAsked: boolean;
}

/** The advisory lock that prevents two tasks from writing an outbox row for the same email. */
const PUT_BACK_LOCK = 6_120_455_908;

/**
 * Starts new workflows for the open emails of a lost workflow, through the outbox. Call it in a transaction.
 *
 * `start` lets the relay group them, so that a lost Temporal database does not result in one workflow per email. Temporal
 * refuses it for an id that was used before: an email whose own workflow has closed is started with `leave`, as are unsent
 * copies, which cannot be grouped.
 * A workflow that has closed is evidence that Postgres forgot how its emails ended, in a fail-over or with lost rows: they are then made
 * ambiguous, unless their last attempts are already, or have an answer that is to be applied.
 * @param state of the workflow in Temporal
 * @returns the ids of the emails that were open
 */
export async function requeueEmails(
  db: Db,
  workflowId: string,
  ids: readonly string[],
  state: 'missing' | 'closed' | 'idle' | 'failing',
  { provider, canBeAsked }: LookUp,
): Promise<string[]> {
  await execute(db, { name: 'lock_put_back', text: `SELECT pg_advisory_xact_lock($1)`, values: [PUT_BACK_LOCK] });
  await lockRows(db, ids);
  return queryColumn(db, {
    name: 'put_back_emails',
    text: `WITH open AS MATERIALIZED (
             SELECT requested.id, email.is_whole, email.may_have_forgotten
             FROM (
               SELECT * FROM unnest($2::text[]) AS requested(id)
               WHERE id NOT IN (SELECT message_id FROM outbox) ORDER BY id COLLATE "C"
             ) AS requested CROSS JOIN LATERAL (
               SELECT status IN ('queued', 'scheduled') AS is_whole,
                      $3 = 'closed' AND ($6 OR status <> 'scheduled' OR scheduled_at <= now())
                        AND ${EMAIL_MAY_HAVE_FORGOTTEN('emails')} AS may_have_forgotten
               FROM emails
               WHERE id = requested.id AND workflow_id = $1
                 AND ${IS_OPEN('emails')}
               OFFSET 0
             ) AS email
           ), ambiguous AS (
             ${insertAmbiguousAttempts(LAST_PROVIDER, 'now()', '$5', 'may_have_forgotten')}
           ), moved AS (
             UPDATE emails SET workflow_id = id WHERE id = ANY (ARRAY(SELECT id FROM open))
           )
           INSERT INTO outbox (message_id, action)
           SELECT id, CASE WHEN is_whole AND ($3 = 'missing' OR id <> $1) THEN 'start' ELSE 'leave' END FROM open ORDER BY id
           RETURNING message_id`,
    values: [workflowId, ids, state, provider, FORGOTTEN, canBeAsked],
  });
}

const LAST_PROVIDER = `coalesce((SELECT provider FROM attempts WHERE message_id = id ORDER BY n DESC LIMIT 1), $4)`;

/**
 * Keeps upkeep from treating emails as overdue until ten minutes after they have waited for `waitMs`. It also shows the relay that a
 * worker has claimed them, although none was sent.
 */
export async function postponeCheck(db: Db, ids: readonly string[], waitMs: number): Promise<void> {
  if (ids.length === 0) return;
  await execute(db, {
    name: 'postpone_check',
    text: `UPDATE emails SET look_at = now() + $2::float8 * interval '1 millisecond' + interval '10 minutes'
           WHERE id = ANY ($1) AND (look_at IS NULL OR look_at <= now() + $2::float8 * interval '1 millisecond')`,
    values: [ids, waitMs],
  });
}

/**
 * SQL that schedules the next check of rows, at twice the time for which they have been stuck: at most an hour later, or a day
 * for messages that a provider accepted. These are not checked after three days. A later time that was set while upkeep checked the
 * row, such as by a reschedule, is kept.
 * @param where selects the rows, among those with the ids `$1`
 * @param isAccepted the condition that a provider accepted a message for all recipients
 * @param never `look_at` of a row that is not to be checked again
 */
export const SCHEDULE_CHECK = (table: string, where: string, isAccepted: string, never: string): string => `
  UPDATE ${table}
  SET look_at = CASE WHEN stuck.accepted AND now() + least(stuck.since, stuck.most) > ${table}.last_event_at + interval '72 hours'
                     THEN ${never} ELSE greatest(${table}.look_at, now() + least(stuck.since, stuck.most)) END
  FROM (
    SELECT id, accepted, CASE WHEN accepted THEN interval '24 hours' ELSE interval '1 hour' END AS most,
           now() - CASE WHEN accepted THEN last_event_at ELSE coalesce(scheduled_at, created_at) END AS since
    FROM (SELECT *, ${isAccepted} AS accepted FROM ${table} WHERE ${where}) AS looked_at
  ) AS stuck
  WHERE ${table}.id = stuck.id AND ${table}.id = ANY ($1)`;

const IS_ACCEPTED = `NOT ${IS_OPEN('emails')}`;

/** Schedules the next check of emails: see `SCHEDULE_CHECK`. */
export async function scheduleNextCheck(db: Db, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await execute(db, {
    name: 'schedule_next_check',
    text: SCHEDULE_CHECK('emails', 'id = ANY ($1)', IS_ACCEPTED, `'infinity'`),
    values: [ids],
  });
}
