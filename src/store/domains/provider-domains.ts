import type { ProviderRecords } from '../../domain/senders/sender-records.ts';
import { backOff } from '../postgres/back-off.ts';
import { type Db, execute, queryRows } from '../postgres/pool.ts';

/** A domain in the operator's account at a provider. */
export interface ProviderDomain {
  readonly id: number;
  readonly records: ProviderRecords;
}

/**
 * Records a provider's state of a domain, as unused if its last registration was deleted before the provider answered.
 * @param ours true if we created it there now; an earlier true is kept
 */
export async function saveProviderDomain(
  db: Db,
  name: string,
  { id, records }: ProviderDomain,
  ours: boolean,
): Promise<void> {
  await execute(
    db,
    `INSERT INTO provider_domains (name, provider_id, ours, details, unused_since)
     VALUES ($1, $2, $3, $4, CASE WHEN NOT EXISTS (SELECT FROM domains WHERE name = $1) THEN now() END)
     ON CONFLICT (name) DO UPDATE SET
       details = excluded.details,
       ours = excluded.ours OR (provider_domains.ours AND provider_domains.provider_id = excluded.provider_id),
       provider_id = excluded.provider_id,
       unused_since = coalesce(provider_domains.unused_since, excluded.unused_since)`,
    [name, id, ours, JSON.stringify(records)],
  );
}

/** A domain that an organization has deleted. */
export interface UnusedDomain {
  readonly name: string;
  readonly provider_id: number;
  readonly ours: boolean;
  /** True if an organization has it, still or again. */
  readonly is_used: boolean;
  /** When it was deleted last. */
  readonly unused_since: string;
}

/** Domains to delete at the provider now. Deleting twice is harmless. */
export function dueUnusedDomains(db: Db, limit: number): Promise<UnusedDomain[]> {
  return queryRows(
    db,
    `SELECT name, provider_id::float8 AS provider_id, ours, unused_since::text AS unused_since,
            EXISTS (SELECT FROM domains WHERE domains.name = unused.name) AS is_used
     FROM provider_domains AS unused WHERE unused_since IS NOT NULL AND retry_at <= now() ORDER BY retry_at LIMIT $1`,
    [limit],
  );
}

/**
 * Deletes the record of an unused domain, unless it has another id at the provider by now. Marks a used one as used, unless it
 * was deleted again since it was read.
 */
export async function endUnusedDomain(
  db: Db,
  { name, provider_id: id, is_used: isUsed, unused_since: since }: UnusedDomain,
): Promise<void> {
  if (isUsed) {
    await execute(db, `UPDATE provider_domains SET unused_since = NULL WHERE name = $1 AND unused_since = $2`, [
      name,
      since,
    ]);
  } else {
    await execute(db, `DELETE FROM provider_domains WHERE name = $1 AND provider_id = $2`, [name, id]);
  }
}

/** Defers a domain because the provider is unreachable: by a minute, doubling to six hours. */
export async function deferUnusedDomain(db: Db, name: string): Promise<void> {
  await execute(
    db,
    `UPDATE provider_domains
     SET tries = tries + 1, retry_at = ${backOff(360, 'minute')}
     WHERE name = $1`,
    [name],
  );
}
