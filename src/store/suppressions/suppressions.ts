import type { BounceReason } from '../../domain/email/email.ts';
import type { SuppressionOrigin } from '../../domain/email/suppression.ts';
import { type Cursor, cursorValues } from '../postgres/page.ts';
import { type Db, inTransaction, queryRows } from '../postgres/pool.ts';
import { enqueueEvents } from '../webhooks/events.ts';
import { columns } from '../postgres/columns.ts';

/** An entry of an organization's list, as the API shows it. */
export interface Suppression {
  id: string;
  /** In lower case. */
  email: string;
  origin: SuppressionOrigin;
  /** Of a bounce. */
  reason: BounceReason | null;
  /** The email that caused it. */
  email_id: string | null;
  created_at: string;
}

const SUPPRESSION = 'id, email, origin, reason, message_id AS email_id, created_at';

/** An address that receives no email of an organization; after an unsubscription, no marketing email. */
export interface NewSuppression {
  readonly id: string;
  readonly org_id: string;
  /** The bare address, in any case. */
  readonly email: string;
  readonly origin: SuppressionOrigin;
  readonly reason?: BounceReason;
  readonly message_id?: string;
}

/**
 * Adds missing addresses to their organizations' lists and enqueues webhooks. Of several about one address, the oldest id counts.
 * @returns ids of those that are new
 */
export async function addSuppressions(db: Db, suppressions: readonly NewSuppression[]): Promise<string[]> {
  if (suppressions.length === 0) return [];
  return inTransaction(db, async (client) => {
    const added = await queryRows<Suppression & { org_id: string }>(client, {
      name: 'add_suppressions',
      text: `INSERT INTO suppressions (id, org_id, email, origin, reason, message_id)
             SELECT id, org_id, lower(email), origin, reason, message_id
             FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
               AS input(id, org_id, email, origin, reason, message_id)
             ORDER BY org_id, lower(email), id
             ON CONFLICT DO NOTHING RETURNING org_id, ${SUPPRESSION}`,
      values: columns(suppressions, 'id', 'org_id', 'email', 'origin', 'reason', 'message_id'),
    });
    await enqueueEvents(
      client,
      added.map(({ id, org_id, email, origin, reason, email_id, created_at }) => ({
        org_id,
        type: 'suppression.added',
        created_at,
        data: {
          suppressionId: id,
          email,
          origin,
          ...(reason !== null && { bounceReason: reason }),
          ...(email_id !== null && { emailId: email_id }),
        },
      })),
    );
    return added.map(({ id }) => id);
  });
}

export interface SuppressedAddress {
  readonly org_id: string;
  readonly email: string;
  /** True if it receives no email; false if it receives no marketing email. */
  readonly all: boolean;
}

/**
 * Finds the addresses that are on their organizations' lists or were erased.
 * @param inputs bare addresses in lower case, with their hashes where the organization has a data key
 */
export async function findSuppressed(
  db: Db,
  inputs: readonly { readonly org_id: string; readonly email: string; readonly hash?: Buffer | undefined }[],
): Promise<SuppressedAddress[]> {
  if (inputs.length === 0) return [];
  return queryRows(db, {
    name: 'find_suppressed',
    text: `WITH input AS MATERIALIZED (
             SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[]) AS input(org_id, email, hash)
           )
           SELECT org_id, email, bool_or(for_all) AS all
           FROM (
             SELECT org_id, email, entry.for_all FROM input CROSS JOIN LATERAL (
               SELECT origin <> 'unsubscribe' AS for_all FROM suppressions
               WHERE org_id = input.org_id AND email = input.email OFFSET 0
             ) AS entry
             UNION ALL
             SELECT org_id, email, true FROM input CROSS JOIN LATERAL (
               SELECT FROM erased_recipients WHERE org_id = input.org_id AND hash = input.hash OFFSET 0
             ) AS erased
           ) AS found
           GROUP BY org_id, email`,
    values: columns(inputs, 'org_id', 'email', 'hash'),
  });
}

/**
 * Finds entries of an organization's list; entries for all email come before those for marketing email.
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

/** Returns a separate statement for each set of filters, so that each is planned for its own index. */
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
 * @param origins the origins to remove; null for all
 * @returns the removed entries
 */
export function removeSuppressions(
  db: Db,
  orgId: string,
  named: string,
  origins: readonly SuppressionOrigin[] | null,
): Promise<Pick<Suppression, 'id' | 'email' | 'origin'>[]> {
  return inTransaction(db, async (client) => {
    const removed = await queryRows<Pick<Suppression, 'id' | 'email' | 'origin'>>(client, {
      name: 'remove_suppressions',
      text: `DELETE FROM suppressions
             WHERE org_id = $1 AND (id = $2 OR email = $2) AND ($3::text[] IS NULL OR origin = ANY ($3))
             RETURNING id, email, origin`,
      values: [orgId, named, origins],
    });
    await enqueueEvents(
      client,
      removed.map(({ id, email, origin }) => ({
        org_id: orgId,
        type: 'suppression.removed',
        data: { suppressionId: id, email, origin },
      })),
    );
    return removed;
  });
}
