import type { BounceReason } from '../../domain/email/email.ts';
import type { SuppressionOrigin } from '../../domain/email/suppression.ts';
import { type Cursor, cursorValues } from '../postgres/page.ts';
import { type Db, queryRows } from '../postgres/pool.ts';
import { ENQUEUE_WEBHOOKS } from '../webhooks/events.ts';
import { columns } from '../postgres/columns.ts';

/** An entry of an organization's list, as the API shows it. */
export interface Suppression {
  id: string;
  /** In lower case. */
  email: string;
  origin: SuppressionOrigin;
  /** Of a bounce. */
  reason: BounceReason | null;
  /** The email that led to it. */
  email_id: string | null;
  created_at: string;
}

/** An address that an organization shall send nothing to, or, when it unsubscribed, no marketing email. */
export interface NewSuppression {
  readonly id: string;
  /** Of the webhook event. */
  readonly event_id: string;
  readonly org_id: string;
  /** The bare address, in any case. */
  readonly email: string;
  readonly origin: SuppressionOrigin;
  readonly reason?: BounceReason;
  readonly message_id?: string;
}

/**
 * Adds addresses to their organizations' lists and enqueues webhooks. Existing entries do not change.
 * @returns ids of those that are new
 */
export async function addSuppressions(db: Db, suppressions: readonly NewSuppression[]): Promise<string[]> {
  if (suppressions.length === 0) return [];
  const { rows } = await db.query<{ id: string }>({
    name: 'add_suppressions',
    text: `WITH input AS MATERIALIZED (
             SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
               AS input(id, event_id, org_id, email, origin, reason, message_id)
           ), added AS (
             INSERT INTO suppressions (id, org_id, email, origin, reason, message_id)
             SELECT id, org_id, lower(email), origin, reason, message_id FROM input ORDER BY org_id, lower(email)
             ON CONFLICT DO NOTHING
             RETURNING id, org_id, email, origin, reason, message_id, created_at
           ), happened AS MATERIALIZED (
             SELECT input.event_id, added.org_id, 'suppression.added' AS type, added.created_at, NULL::text AS message_id,
                    jsonb_strip_nulls(jsonb_build_object('suppressionId', added.id, 'email', added.email,
                      'origin', added.origin, 'bounceReason', added.reason, 'emailId', added.message_id)) AS data
             FROM added JOIN input USING (id)
           )${ENQUEUE_WEBHOOKS}
           SELECT id FROM added`,
    values: columns(suppressions, 'id', 'event_id', 'org_id', 'email', 'origin', 'reason', 'message_id'),
  });
  return rows.map(({ id }) => id);
}

/** The state of an address on an organization's list. */
export interface Standing {
  readonly org_id: string;
  readonly email: string;
  /** Nothing goes there; otherwise, no marketing email does. */
  readonly all: boolean;
}

/**
 * Which of these addresses are on their organizations' lists, or were erased.
 * @param inputs bare addresses in lower case, with their hashes where the organization has a data key
 */
export async function findSuppressed(
  db: Db,
  inputs: readonly { readonly org_id: string; readonly email: string; readonly hash?: Buffer | undefined }[],
): Promise<Standing[]> {
  if (inputs.length === 0) return [];
  return queryRows(db, {
    name: 'find_suppressed',
    text: `WITH input AS MATERIALIZED (
             SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[]) AS input(org_id, email, hash)
           )
           SELECT org_id, email, bool_or(for_all) AS all
           FROM (
             SELECT org_id, email, origin <> 'unsubscribe' AS for_all FROM input JOIN suppressions USING (org_id, email)
             UNION ALL
             SELECT org_id, email, true FROM input JOIN erased_recipients USING (org_id, hash)
           ) AS found
           GROUP BY org_id, email`,
    values: columns(inputs, 'org_id', 'email', 'hash'),
  });
}

const SUPPRESSION = 'id, email, origin, reason, message_id AS email_id, created_at';

/**
 * Entries of an organization's list, those for all mail before those for marketing email.
 * @param named ids, or bare addresses in lower case; an address has two entries at most
 */
export function findSuppressions(db: Db, orgId: string, named: readonly string[]): Promise<Suppression[]> {
  return queryRows(db, {
    name: 'find_suppressions',
    text: `SELECT ${SUPPRESSION} FROM suppressions
           WHERE org_id = $1 AND (id = ANY ($2) OR email = ANY ($2)) ORDER BY origin = 'unsubscribe', id`,
    values: [orgId, named],
  });
}

/** What a listed suppression must have, all of it. */
export interface SuppressionFilters {
  readonly origin: SuppressionOrigin | null;
  /** A bare address in lower case. */
  readonly email: string | null;
}

/** An organization's list, newest first. */
export function listSuppressions(
  db: Db,
  orgId: string,
  filters: SuppressionFilters,
  after: Cursor | null,
  limit: number,
): Promise<Suppression[]> {
  const { name, condition, values } = filterBy(filters);
  return queryRows(db, {
    name,
    text: `SELECT ${SUPPRESSION} FROM suppressions
           WHERE org_id = $1 AND (created_at, id) < ($2::timestamptz, $3) ${condition}
           ORDER BY created_at DESC, id DESC LIMIT $4`,
    values: [orgId, ...cursorValues(after), limit, ...values],
  });
}

/** A statement for each set of filters, so that each is planned for its own index. */
function filterBy({ origin, email }: SuppressionFilters): { name: string; condition: string; values: unknown[] } {
  if (email !== null) {
    const condition = 'AND email = $5 AND ($6::text IS NULL OR origin = $6)';
    return { name: 'list_suppressions_of_address', condition, values: [email, origin] };
  }
  if (origin !== null) return { name: 'list_suppressions_by_origin', condition: 'AND origin = $5', values: [origin] };
  return { name: 'list_suppressions', condition: '', values: [] };
}

/**
 * Removes entries from an organization's list and enqueues webhooks. The provider's list does not change.
 * @param named an id, or a bare address in lower case, which has two entries at most
 * @param origins the only ones that go; null for every one
 * @param eventIds of the webhook events
 * @returns what was removed
 */
export function removeSuppressions(
  db: Db,
  orgId: string,
  named: string,
  origins: readonly SuppressionOrigin[] | null,
  eventIds: readonly [string, string],
): Promise<Pick<Suppression, 'id' | 'email' | 'origin'>[]> {
  return queryRows(db, {
    name: 'remove_suppressions',
    text: `WITH removed AS (
             DELETE FROM suppressions
             WHERE org_id = $1 AND (id = $2 OR email = $2) AND ($3::text[] IS NULL OR origin = ANY ($3))
             RETURNING id, org_id, email, origin
           ), happened AS MATERIALIZED (
             SELECT ($4::text[])[row_number() OVER (ORDER BY id)] AS event_id, org_id, 'suppression.removed' AS type,
                    now()::timestamptz(3) AS created_at, NULL::text AS message_id,
                    jsonb_build_object('suppressionId', id, 'email', email, 'origin', origin) AS data
             FROM removed
           )${ENQUEUE_WEBHOOKS}
           SELECT id, email, origin FROM removed`,
    values: [orgId, named, origins, eventIds],
  });
}
