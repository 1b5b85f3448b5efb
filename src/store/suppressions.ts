import type { BounceReason } from '../domain/email.ts';
import type { SuppressionOrigin } from '../domain/suppression.ts';
import type { Db } from './pool.ts';
import { TELL_ENDPOINTS } from './webhook-events.ts';

/** An address that an organization shall send nothing to, or, when it unsubscribed, no marketing email. */
export interface NewSuppression {
  readonly id: string;
  /** Of the event that tells customers of it. */
  readonly event_id: string;
  readonly org_id: string;
  /** The bare address, in any case. */
  readonly email: string;
  readonly origin: SuppressionOrigin;
  readonly reason?: BounceReason;
  readonly message_id?: string;
}

/**
 * Puts addresses on their organizations' lists and tells their endpoints. What is there already stays as it is.
 * @returns ids of those that are new
 */
export async function addSuppressions(db: Db, suppressions: readonly NewSuppression[]): Promise<string[]> {
  if (suppressions.length === 0) return [];
  const { rows } = await db.query<{ id: string }>({
    name: 'add_suppressions',
    text: `WITH wish AS MATERIALIZED (
             SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
               AS wish(id, event_id, org_id, email, origin, reason, message_id)
           ), added AS (
             INSERT INTO suppressions (id, org_id, email, origin, reason, message_id)
             SELECT id, org_id, lower(email), origin, reason, message_id FROM wish ORDER BY org_id, lower(email)
             ON CONFLICT DO NOTHING
             RETURNING id, org_id, email, origin, reason, message_id, created_at
           ), happened AS MATERIALIZED (
             SELECT wish.event_id, added.org_id, 'suppression.added' AS type, added.created_at, NULL::text AS message_id,
                    jsonb_strip_nulls(jsonb_build_object('suppressionId', added.id, 'email', added.email,
                      'origin', added.origin, 'bounceReason', added.reason, 'emailId', added.message_id)) AS data
             FROM added JOIN wish USING (id)
           )${TELL_ENDPOINTS}
           SELECT id FROM added`,
    values: [
      suppressions.map(({ id }) => id),
      suppressions.map(({ event_id }) => event_id),
      suppressions.map(({ org_id }) => org_id),
      suppressions.map(({ email }) => email),
      suppressions.map(({ origin }) => origin),
      suppressions.map(({ reason }) => reason ?? null),
      suppressions.map(({ message_id }) => message_id ?? null),
    ],
  });
  return rows.map(({ id }) => id);
}

/** What an organization's list says of an address. */
export interface Standing {
  readonly org_id: string;
  readonly email: string;
  /** Nothing goes there; otherwise, no marketing email does. */
  readonly all: boolean;
}

/** Which of these addresses are on their organizations' lists. @param emails bare, in lower case */
export async function findSuppressed(
  db: Db,
  wishes: readonly { readonly org_id: string; readonly email: string }[],
): Promise<Standing[]> {
  if (wishes.length === 0) return [];
  const { rows } = await db.query<Standing>({
    name: 'find_suppressed',
    text: `SELECT org_id, email, bool_or(origin <> 'unsubscribe') AS all
           FROM unnest($1::text[], $2::text[]) AS wish(org_id, email) JOIN suppressions USING (org_id, email)
           GROUP BY org_id, email`,
    values: [wishes.map(({ org_id }) => org_id), wishes.map(({ email }) => email)],
  });
  return rows;
}
