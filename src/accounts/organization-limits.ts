import { ServiceError } from '../domain/errors.ts';
import { formatNumber } from '../lib/text.ts';
import { type LimitedResource, lockAndCount } from '../store/accounts/organization-limits.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';

/** Disables all limits of an organization, as for the operator's command line; 0 means no limit. */
export const UNLIMITED_ORGANIZATION = {
  endpoints: 0,
  domains: 0,
  keys: 0,
  numbers: 0,
  /** An invitation also counts against this limit when it is created. */
  members: 0,
  /** Distinct pairs of tag name and value. */
  tagPairs: 0,
  /** Bytes of stored attachments. */
  storedBytes: 0,
};
export type OrganizationLimits = Readonly<typeof UNLIMITED_ORGANIZATION>;

const NAMES: Readonly<Record<LimitedResource, string>> = {
  endpoints: 'webhook endpoints',
  domains: 'domains',
  keys: 'API keys',
  numbers: 'numbers',
  members: 'members',
  invitations: 'members and open invitations',
};

/** Checks the limit in the transaction that creates an object. @throws ServiceError limit_exceeded */
export async function requireCapacity(
  client: Db,
  limits: OrganizationLimits,
  resource: LimitedResource,
  orgId: string,
): Promise<void> {
  const limit = limits[resource === 'invitations' ? 'members' : resource];
  if (limit === 0 || (await lockAndCount(client, resource, orgId, limit)) < limit) return;
  throw limitExceeded(`the organization has ${formatNumber(limit)} ${NAMES[resource]}, which is its limit`);
}

/**
 * Creates an object in its own transaction, unless the organization has reached the limit.
 * @throws ServiceError limit_exceeded, and the errors of `create`
 */
export function withinLimit<T>(
  pool: Pool,
  limits: OrganizationLimits,
  resource: LimitedResource,
  orgId: string,
  create: (client: Db) => Promise<T>,
): Promise<T> {
  return transaction(pool, async (client) => {
    await requireCapacity(client, limits, resource, orgId);
    return create(client);
  });
}

export function limitExceeded(message: string): ServiceError {
  return new ServiceError('limit_exceeded', message);
}
