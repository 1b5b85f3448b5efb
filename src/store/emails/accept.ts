import { allowanceOf } from '../../domain/email/allowance.ts';
import type { SealedContent } from '../../domain/email/content.ts';
import type { EmailRequest } from '../../domain/email/email.ts';
import { IS_SUSPENDED } from '../accounts/suspension.ts';
import { type IdempotencyKey, rememberResponses } from '../limits/idempotency.ts';
import { countAgainstQuota } from '../limits/quota.ts';
import { columns } from '../postgres/columns.ts';
import { type Db, inTransaction, queryRow } from '../postgres/pool.ts';
import { enqueueFor, type SubscribedEndpoint } from '../webhooks/events.ts';
import { timeProblem } from './emails.ts';
import { insertTags, TAG_BITS } from './tags.ts';

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

/** What the database decides about emails before they are stored. */
export interface Judgement {
  /** The time of the transaction, which is that of their acceptance. */
  readonly created_at: string;
  /** Whether their organization has a quota. */
  readonly has_quota: boolean;
  /** Those of their organization. */
  readonly endpoints: readonly SubscribedEndpoint[];
  /** Times before domains, since fields are checked first; `index` counts from 0. */
  readonly refusals: readonly { readonly index: number; readonly refusal: Refusal }[];
}

/**
 * Judges emails by the database's clock and domains. Stores nothing.
 * @param domainIds the only domains the caller's key may send from, or null
 */
export async function judgeEmails(
  db: Db,
  orgId: string,
  domainIds: readonly string[] | null,
  emails: readonly SenderAndTime[],
): Promise<Judgement> {
  const judgement = await queryRow<Judgement>(db, {
    name: 'judge_emails',
    text: `WITH judged AS (
             SELECT position::int - 1 AS index, coalesce(${timeProblem('email.scheduled_at')}, CASE
                      WHEN ${IS_SUSPENDED('$1')} THEN 'suspended'
                      WHEN domain.id IS NULL THEN 'domain_not_found'
                      WHEN domain.id <> ALL ($2::text[]) THEN 'insufficient_scope'
                      WHEN domain.status <> 'verified' THEN 'domain_not_verified'
                    END) AS refusal
             FROM unnest($3::text[], $4::timestamptz[]) WITH ORDINALITY AS email(from_domain, scheduled_at, position)
                  LEFT JOIN domains AS domain ON domain.org_id = $1 AND domain.name = email.from_domain
           )
           SELECT now()::timestamptz(3) AS created_at,
                  EXISTS (SELECT FROM organizations WHERE id = $1 AND monthly_quota IS NOT NULL) AS has_quota,
                  (SELECT coalesce(json_agg(endpoint), '[]') FROM (
                     SELECT id, org_id, events FROM webhook_endpoints WHERE org_id = $1 AND status = 'enabled'
                   ) AS endpoint) AS endpoints,
                  coalesce(json_agg(judged ORDER BY refusal NOT IN ('past', 'far'), index), '[]') AS refusals
           FROM judged WHERE refusal IS NOT NULL`,
    values: [orgId, domainIds, ...columns(emails, 'from_domain', 'scheduled_at')],
  });
  return judgement as Judgement;
}

/**
 * Judges and stores single emails; those that an answer holds a refusal for are left out. A quota that does not reach for
 * all of them refuses all. Answers are in the order of the emails.
 * @throws SQLSTATE 23505 when an idempotency key has been used meanwhile
 */
export function acceptEmails(
  db: Db,
  orgId: string,
  domainIds: readonly string[] | null,
  emails: readonly NewEmail[],
): Promise<Acceptance[]> {
  return inTransaction(db, async (client, commitWith) => {
    const judgement = await judgeEmails(client, orgId, domainIds, emails);
    const { created_at, has_quota, refusals } = judgement;
    const refused = new Map(refusals.map(({ index, refusal }) => [index, refusal]));
    const accepted = emails.filter((_, index) => !refused.has(index));
    const allowance = accepted.reduce((sum, email) => sum + allowanceOf(email), 0);
    const isWithin = !has_quota || (await countAgainstQuota(client, orgId, allowance));
    if (isWithin) await commitWith(insertEmails(client, orgId, accepted, judgement));
    return emails.map(({ id, scheduled_at }, index) => {
      const refusal = refused.get(index) ?? (isWithin ? null : 'quota_exceeded');
      return { id, status: statusOf(scheduled_at), created_at, scheduled_at, refusal, has_quota };
    });
  });
}

/** Stores judged emails with everything that belongs to them, in the transaction of their judgement. */
export async function insertEmails(
  client: Db,
  orgId: string,
  emails: readonly NewEmail[],
  { created_at, endpoints }: Pick<Judgement, 'created_at' | 'endpoints'>,
): Promise<void> {
  if (emails.length === 0) return;
  await Promise.all([
    insertRows(client, orgId, emails),
    insertBodies(client, emails),
    insertTags(client, orgId, emails),
    enqueueFor(
      client,
      endpoints,
      emails.map(({ id, event_id, scheduled_at }) => {
        const status = statusOf(scheduled_at);
        const data = { status, ...(scheduled_at !== null && { scheduledAt: scheduled_at }) };
        return { event_id, org_id: orgId, type: `email.${status}`, created_at, message_id: id, data };
      }),
    ),
    rememberResponses(
      client,
      orgId,
      emails.flatMap(({ idempotency, id, scheduled_at }) =>
        idempotency
          ? { ...idempotency, response: { id, status: statusOf(scheduled_at), created_at, scheduled_at } }
          : [],
      ),
    ),
  ]);
}

function statusOf(scheduledAt: string | null): 'queued' | 'scheduled' {
  return scheduledAt === null ? 'queued' : 'scheduled';
}

/** The emails with their first events and outbox rows, counted in the hour of their acceptance. */
async function insertRows(client: Db, orgId: string, emails: readonly NewEmail[]): Promise<void> {
  const rows = emails.map(({ id, event_id, batch_id, from, to, cc, bcc, reply_to, subject, marketing, ...email }) => {
    const { tags, headers, sealed, scheduled_at, traceparent } = email;
    const sealed_headers = sealed?.sealed_headers ? `\\x${sealed.sealed_headers.toString('hex')}` : null;
    const shown = { from, to, cc, bcc, reply_to, subject, marketing, tags, headers, sealed_headers };
    return { id, event_id, batch_id, ...shown, status: statusOf(scheduled_at), scheduled_at, traceparent };
  });
  await client.query({
    name: 'insert_emails',
    text: `WITH email AS MATERIALIZED (
             SELECT * FROM json_to_recordset($2) AS email(id text, event_id text, batch_id text, "from" text, "to" jsonb,
               cc jsonb, bcc jsonb, reply_to jsonb, subject text, marketing boolean, tags jsonb, headers json,
               sealed_headers bytea, status text, scheduled_at timestamptz, traceparent text)
           ), recorded AS (
             INSERT INTO email_events (email_id, id, type, created_at) SELECT id, event_id, 'email.' || status, now() FROM email
           ), enqueued AS (
             INSERT INTO outbox (message_id, action, traceparent) SELECT id, 'start', traceparent FROM email
           ), counted AS (
             INSERT INTO email_moves (org_id, hour, to_status, emails)
             SELECT $1, date_trunc('hour', now(), 'UTC'), status, count(*) FROM email GROUP BY status
           )
           INSERT INTO emails (id, org_id, batch_id, "from", "to", cc, bcc, reply_to, subject, marketing, tags, tag_bits,
                               headers, sealed_headers, status, created_at, scheduled_at, last_event_at, workflow_id)
           SELECT id, $1, batch_id, "from", "to", cc, bcc, reply_to, subject, marketing, tags, ${TAG_BITS},
                  headers, sealed_headers, status, now(), scheduled_at, now(), id FROM email`,
    values: [orgId, JSON.stringify(rows)],
  });
}

async function insertBodies(client: Db, emails: readonly NewEmail[]): Promise<void> {
  await client.query({
    name: 'insert_bodies',
    text: `INSERT INTO email_bodies (email_id, html, text, sealed, body_bytes)
           SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::integer[])`,
    values: [
      ...columns(emails, 'id', 'html', 'text'),
      emails.map(({ sealed }) => sealed?.sealed_body ?? null),
      emails.map(({ sealed }) => sealed?.body_bytes ?? null),
    ],
  });
}
