import { costOf } from '../../domain/email/cost.ts';
import type { SealedContent } from '../../domain/email/content.ts';
import type { EmailRequest } from '../../domain/email/email.ts';
import { TAGS } from '../../domain/limits.ts';
import { setOf } from '../../domain/statistics.ts';
import { IS_SUSPENDED } from '../accounts/suspension.ts';
import type { IdempotencyKey } from '../limits/idempotency.ts';
import { COUNT_WANTED, WITHIN_QUOTA } from '../limits/quota.ts';
import { columns } from '../postgres/columns.ts';
import { type Db, queryRow, queryRows } from '../postgres/pool.ts';
import { timeProblem, wireTime } from './emails.ts';
import { TAG_BITS } from './tags.ts';

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
  /** The API key of its request; absent for the dashboard, and for the members of a batch, which has it. */
  key_id?: string | undefined;
}

/** The reason why an email was not stored; the database's clock decides about the first two. */
export type Refusal = 'past' | 'far' | 'suspended' | 'domain_not_found' | 'insufficient_scope' | 'domain_not_verified';

export interface Acceptance {
  id: string;
  status: 'queued' | 'scheduled';
  created_at: string;
  scheduled_at: string | null;
  refusal: Refusal | 'quota_exceeded' | null;
  /** True if its organization has a quota. */
  has_quota: boolean;
}

/** A refusal among many emails; `index` counts from 0. */
export interface RefusedEmail {
  readonly index: number;
  readonly refusal: Refusal;
}

/** SQL of the reason for which an email is refused, by the database's clock and the row `domain` of its sender. Times precede domains. */
const REFUSAL = `coalesce(${timeProblem('email.scheduled_at')}, CASE
        WHEN ${IS_SUSPENDED('$1')} THEN 'suspended'
        WHEN domain.id IS NULL THEN 'domain_not_found'
        WHEN domain.id <> ALL ($2::text[]) THEN 'insufficient_scope'
        WHEN domain.status <> 'verified' THEN 'domain_not_verified'
      END)`;

/**
 * The first refusal among many emails, or undefined: times before domains. Stores nothing.
 * @param domainIds the only domains the caller's key may send from, or null
 */
export function judgeEmails(
  db: Db,
  orgId: string,
  domainIds: readonly string[] | null,
  emails: readonly SenderAndTime[],
): Promise<RefusedEmail | undefined> {
  return queryRow(db, {
    name: 'judge_emails',
    text: `SELECT index, refusal FROM (
             SELECT position::int - 1 AS index, ${REFUSAL} AS refusal
             FROM unnest($3::text[], $4::timestamptz[]) WITH ORDINALITY AS email(from_domain, scheduled_at, position)
                  LEFT JOIN domains AS domain ON domain.org_id = $1 AND domain.name = email.from_domain
           ) AS judged
           WHERE refusal IS NOT NULL ORDER BY refusal NOT IN ('past', 'far'), index LIMIT 1`,
    values: [orgId, domainIds, ...columns(emails, 'from_domain', 'scheduled_at')],
  });
}

/**
 * Stores emails with all their rows, in one statement over arrays. Separate statements accepted a sixth fewer single emails of 32
 * connections, JSON input a tenth fewer (decision 129). Refused emails are not stored. If the quota does not cover all emails,
 * none is stored. The results are in the order of the emails.
 * @param group the workflow that delivers them, which the caller adds to the outbox; by default each email has its own
 * @throws SQLSTATE 23505 when an idempotency key has been used meanwhile; then nothing is stored
 */
export function acceptEmails(
  db: Db,
  orgId: string,
  domainIds: readonly string[] | null,
  emails: readonly NewEmail[],
  group: string | null = null,
): Promise<Acceptance[]> {
  return queryRows(db, {
    name: 'accept_emails',
    text: ACCEPT_EMAILS,
    values: [orgId, domainIds, group, ...Object.values(COLUMNS).map(([, valueOf]) => emails.map(valueOf))],
  });
}

/** The columns of `email` in ACCEPT_EMAILS: their types, and the value of an email. */
const COLUMNS: Readonly<Record<string, readonly [type: string, valueOf: (email: NewEmail) => unknown]>> = {
  id: ['text', ({ id }) => id],
  event_id: ['text', ({ event_id }) => event_id],
  batch_id: ['text', ({ batch_id }) => batch_id],
  from_domain: ['text', ({ from_domain }) => from_domain],
  from: ['text', ({ from }) => from],
  to: ['jsonb', ({ to }) => toJson(to)],
  cc: ['jsonb', ({ cc }) => toJson(cc)],
  bcc: ['jsonb', ({ bcc }) => toJson(bcc)],
  reply_to: ['jsonb', ({ reply_to }) => toJson(reply_to)],
  subject: ['text', ({ subject }) => subject],
  marketing: ['boolean', ({ marketing }) => marketing],
  tags: ['jsonb', ({ tags }) => toJson(tags)],
  headers: ['json', ({ headers }) => toJson(headers)],
  html: ['text', ({ html }) => html],
  text: ['text', ({ text }) => text],
  scheduled_at: ['timestamptz', ({ scheduled_at }) => scheduled_at],
  traceparent: ['text', ({ traceparent }) => traceparent],
  key: ['text', ({ idempotency }) => idempotency?.key],
  fingerprint: ['bytea', ({ idempotency }) => idempotency?.fingerprint],
  sealed: ['bytea', ({ sealed }) => sealed?.sealed_body],
  body_bytes: ['integer', ({ sealed }) => sealed?.body_bytes],
  sealed_headers: ['bytea', ({ sealed }) => sealed?.sealed_headers],
  // The members of a batch are counted together.
  cost: ['integer', (email) => (email.batch_id === null ? costOf(email) : 0)],
  key_id: ['text', ({ key_id }) => key_id],
};

/** Null stays SQL's NULL instead of JSON's. */
function toJson(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

/** $1, $2 and $3 are the organization, the permitted domains and the group. */
const PARAMETERS = Object.values(COLUMNS).map(([type], index) => `$${index + 4}::${type}[]`);
const NAMES = Object.keys(COLUMNS).map((name) => `"${name}"`);

const ACCEPTED = setOf('accepted');

const ACCEPT_EMAILS = `
  WITH judged AS MATERIALIZED (
    SELECT email.*, CASE WHEN email.scheduled_at IS NULL THEN 'queued' ELSE 'scheduled' END AS status, ${REFUSAL} AS refusal
    FROM unnest(${PARAMETERS.join(', ')}) WITH ORDINALITY AS email(${NAMES.join(', ')}, position)
         LEFT JOIN domains AS domain ON domain.org_id = $1 AND domain.name = email.from_domain
  ), wanted AS MATERIALIZED (
    -- Members of a batch are counted together, at its end.
    SELECT sum(cost) AS emails FROM judged WHERE batch_id IS NULL AND refusal IS NULL HAVING count(*) > 0
  ), ${COUNT_WANTED}, accepted AS MATERIALIZED (
    SELECT judged.*, ${TAG_BITS} AS tag_bits FROM judged WHERE refusal IS NULL AND ${WITHIN_QUOTA}
  ), stored AS (
    INSERT INTO emails (id, org_id, batch_id, "from", "to", cc, bcc, reply_to, subject, marketing, tags, tag_bits,
                        headers, sealed_headers, status, created_at, scheduled_at, last_event_at, workflow_id, key_id, reached)
    SELECT id, $1, batch_id, "from", "to", cc, bcc, reply_to, subject, marketing, tags, tag_bits,
           headers, sealed_headers, status, now(), scheduled_at, now(), coalesce($3, id), key_id, ${ACCEPTED}
    FROM accepted
  ), bodies AS (
    INSERT INTO email_bodies (email_id, html, text, sealed, body_bytes)
    SELECT id, html, text, sealed, body_bytes FROM accepted
  ), enqueued AS (
    INSERT INTO outbox (message_id, action, traceparent) SELECT id, 'start', traceparent FROM accepted WHERE $3::text IS NULL
  ), counted AS (
    INSERT INTO stat_additions (org_id, channel, hour, domain, key_id, batch_id, tags, states, messages)
    SELECT $1, 'email', date_trunc('hour', now()::timestamptz(3), 'UTC'), from_domain, key_id, batch_id, nullif(tags, '[]'), ${ACCEPTED}, count(*)
    FROM accepted GROUP BY from_domain, key_id, batch_id, tags
  ), tagged AS MATERIALIZED (
    SELECT accepted.id, accepted.tag_bits, tag.name, tag.value
    FROM accepted CROSS JOIN LATERAL (
      SELECT * FROM jsonb_to_recordset(accepted.tags) AS tag(name text, value text) LIMIT ${TAGS}
    ) AS tag
  ), labelled AS (
    INSERT INTO email_tags (tag, created_at, email_id, tag_bits)
    SELECT tag_key($1, name, value), now(), id, tag_bits FROM tagged
  ), tags_counted AS (
    INSERT INTO tag_additions (org_id, name, value, emails)
    SELECT $1, name, value, count(*) FROM tagged GROUP BY name, value
  ), subscribed AS MATERIALIZED (
    SELECT event_id, 'email.' || status AS type, now()::timestamptz(3) AS at, accepted.id AS message_id, status, scheduled_at,
           endpoint.id AS endpoint_id
    FROM (SELECT id, events FROM webhook_endpoints WHERE org_id = $1 AND status = 'enabled') AS endpoint
         JOIN accepted ON endpoint.events = '{}' OR 'email.' || accepted.status = ANY (endpoint.events)
  ), recorded AS (
    -- The others are derived from the row of the email (TIMELINE_OF).
    INSERT INTO email_events (email_id, id, type, created_at)
    SELECT id, event_id, 'email.' || status, now() FROM accepted
    WHERE status = 'scheduled' OR id IN (SELECT message_id FROM subscribed)
  ), published AS (
    INSERT INTO webhook_events (id, org_id, type, created_at, message_id, data)
    SELECT DISTINCT ON (event_id) event_id, $1, type, at, message_id,
           jsonb_strip_nulls(jsonb_build_object('status', status, 'scheduledAt', ${wireTime('scheduled_at')}))
    FROM subscribed ORDER BY event_id
  ), delivered AS (
    INSERT INTO webhook_deliveries (id, endpoint_id, event_id, type, created_at, next_attempt_at)
    SELECT delivery_id(event_id, endpoint_id), endpoint_id, event_id, type, at, at FROM subscribed
  ), remembered AS (
    INSERT INTO idempotency_keys (org_id, key, fingerprint, answer)
    SELECT $1, key, fingerprint, json_build_object(
      'id', id, 'status', status, 'created_at', ${wireTime('now()')}, 'scheduled_at', ${wireTime('scheduled_at')})
    FROM accepted WHERE key IS NOT NULL
  )
  SELECT id, status, now()::timestamptz(3) AS created_at, scheduled_at::timestamptz(3),
         coalesce(refusal, CASE WHEN NOT ${WITHIN_QUOTA} THEN 'quota_exceeded' END) AS refusal,
         EXISTS (SELECT FROM quota) AS has_quota
  FROM judged ORDER BY position`;
