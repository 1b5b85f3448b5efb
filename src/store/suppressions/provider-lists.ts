import { backOff } from '../postgres/back-off.ts';
import { type Db, execute, queryRows } from '../postgres/pool.ts';

/**
 * Requests the removal of addresses from the provider's own suppression list; the relay starts the task. Skips addresses that the
 * organization still suppresses for all email, of which only the entry for marketing email was removed. OFFSET 0 prevents a plan
 * that reads the organization's whole list.
 * @param emails bare, in lower case
 */
export async function enqueueProviderRemovals(db: Db, orgId: string, emails: readonly string[]): Promise<void> {
  if (emails.length === 0) return;
  await execute(db, {
    name: 'ask_for_provider_removal',
    text: `WITH asked AS (
             INSERT INTO provider_list_removals (org_id, email)
             SELECT DISTINCT $1, email FROM unnest($2::text[]) AS input(email)
             WHERE NOT EXISTS (
               SELECT FROM suppressions AS kept
               WHERE kept.org_id = $1 AND kept.email = input.email AND kept.origin <> 'unsubscribe' OFFSET 0
             )
             RETURNING id
           )
           INSERT INTO outbox (message_id, action)
           SELECT 'clearProviderLists', 'chore' WHERE EXISTS (SELECT FROM asked)`,
    values: [orgId, emails],
  });
}

/** An address to remove from the provider's list. */
export interface ProviderRemoval {
  readonly id: string;
  readonly org_id: string;
  readonly email: string;
  /** True if another organization suppresses the address because of a provider's report, so the provider must keep it. */
  readonly is_shared: boolean;
}

/** Organizations take turns among this many of the oldest and as many of the latest removals. */
const MAX_TURN_CANDIDATES = 500;

/**
 * Returns removals that are due, the oldest of each organization first. They are not locked, because a repeated removal has no
 * effect.
 */
export function dueProviderRemovals(db: Db, limit: number): Promise<ProviderRemoval[]> {
  return queryRows(db, {
    name: 'due_provider_removals',
    text: `WITH due AS (
             (SELECT id, org_id, email FROM provider_list_removals WHERE retry_at <= now() ORDER BY id LIMIT $2)
             UNION
             (SELECT id, org_id, email FROM provider_list_removals WHERE retry_at <= now() ORDER BY id DESC LIMIT $2)
           ), turns AS (
             SELECT *, row_number() OVER (PARTITION BY org_id ORDER BY id) AS turn FROM due
           )
           SELECT id, org_id, email, EXISTS (
             SELECT FROM suppressions AS other
             WHERE other.email = removal.email AND other.org_id <> removal.org_id
               AND other.origin IN ('bounce', 'complaint', 'provider')
           ) AS is_shared
           FROM (SELECT * FROM turns ORDER BY turn, id LIMIT $1) AS removal ORDER BY turn, id`,
    values: [limit, MAX_TURN_CANDIDATES],
  });
}

/** Deletes completed removals. Removals that were requested meanwhile have rows of their own. */
export async function endProviderRemovals(db: Db, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await execute(db, {
    name: 'end_provider_removals',
    text: `DELETE FROM provider_list_removals WHERE id = ANY ($1)`,
    values: [ids],
  });
}

/** Defers a removal because the provider is unreachable: by a minute, doubling to six hours. */
export async function deferProviderRemoval(db: Db, id: string): Promise<void> {
  await execute(
    db,
    `UPDATE provider_list_removals
     SET tries = tries + 1, retry_at = ${backOff(360, 'minute')}
     WHERE id = $1`,
    [id],
  );
}
