import { bareAddress } from '../domain/email/address.ts';
import { ServiceError } from '../domain/errors.ts';
import { newId } from '../lib/ids.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import { enqueueProviderRemovals } from '../store/suppressions/provider-lists.ts';
import {
  addSuppressions,
  findSuppressions,
  removeSuppressions,
  type Suppression,
} from '../store/suppressions/suppressions.ts';

interface SuppressionDeps {
  readonly pool: Pool;
  readonly wakeRelay: () => void;
}

/**
 * Suppresses addresses manually. Addresses that are already suppressed for all mail are unchanged.
 * @param addresses bare, in lower case
 * @returns the number of new entries, and the entry of each distinct address in the given order
 */
export async function suppress(
  { pool, wakeRelay }: SuppressionDeps,
  orgId: string,
  addresses: readonly string[],
): Promise<{ added: number; suppressions: Suppression[] }> {
  const distinct = [...new Set(addresses)];
  const listed = new Map<string, Suppression>();
  let added = 0;
  // Repeat for entries that another request removes between the two statements. The passes do not share a transaction, because
  // the second would take locks out of order while holding those of the first.
  for (let missing = distinct; missing.length > 0; missing = distinct.filter((email) => !listed.has(email))) {
    const additions = missing.map((email) => ({
      id: newId('sup'),
      org_id: orgId,
      email,
      origin: 'manual' as const,
    }));
    added += (await addSuppressions(pool, additions)).length;
    for (const suppression of await findSuppressions(pool, orgId, missing)) {
      if (suppression.origin !== 'unsubscribe') listed.set(suppression.email, suppression);
    }
  }
  if (added > 0) wakeRelay();
  return { added, suppressions: distinct.map((email) => listed.get(email) as Suppression) };
}

/**
 * Finds a suppression. If an address has two, returns the one for all mail.
 * @param idOrEmail an id, or an address in any case
 * @throws ServiceError not_found
 */
export async function findSuppression(db: Db, orgId: string, idOrEmail: string): Promise<Suppression> {
  const [suppression] = await findSuppressions(db, orgId, [toIdOrAddress(idOrEmail)]);
  if (!suppression) throw notListed();
  return suppression;
}

/**
 * Removes one suppression or all of an address, and enqueues the removal at the provider, which usually takes seconds.
 * @param idOrEmail an id, or an address in any case
 * @returns the number of removed entries
 * @throws ServiceError not_found
 */
export async function unsuppress(
  { pool, wakeRelay }: SuppressionDeps,
  orgId: string,
  idOrEmail: string,
): Promise<number> {
  const count = await transaction(pool, async (client) => {
    const removed = await removeSuppressions(client, orgId, toIdOrAddress(idOrEmail), null);
    if (removed.length === 0) throw notListed();
    await enqueueProviderRemovals(
      client,
      orgId,
      removed.map(({ email }) => email),
    );
    return removed.length;
  });
  wakeRelay();
  return count;
}

/** Returns the normalized address. Text that is not an address is treated as an id. */
export function toIdOrAddress(idOrEmail: string): string {
  return bareAddress(idOrEmail) ?? idOrEmail;
}

function notListed(): ServiceError {
  return new ServiceError('not_found', 'the suppression list has no entry with this id or address');
}
