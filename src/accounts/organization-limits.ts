import { ServiceError } from '../domain/errors.ts';
import { type LimitedResource, lockAndCount } from '../store/accounts/organization-limits.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';

/** Limits of one organization; 0 means no limit. The operator's command line is not limited. */
export interface OrganizationLimits {
  readonly endpoints: number;
  readonly domains: number;
  readonly keys: number;
  readonly numbers: number;
  /** Open invitations count when another one is created. */
  readonly members: number;
  /** Distinct tags: pairs of name and value. */
  readonly tagPairs: number;
  readonly storedBytes: number;
}

export const UNLIMITED_ORGANIZATION: OrganizationLimits = {
  endpoints: 0,
  domains: 0,
  keys: 0,
  numbers: 0,
  members: 0,
  tagPairs: 0,
  storedBytes: 0,
};

const NAMES: Readonly<Record<LimitedResource, string>> = {
  endpoints: 'webhook endpoints',
  domains: 'domains',
  keys: 'API keys',
  numbers: 'numbers',
  members: 'members',
  invitations: 'members and open invitations',
};

/** Checks in the transaction that creates an object that it is within its limit. @throws ServiceError limit_exceeded */
export async function requireCapacity(
  client: Db,
  limits: OrganizationLimits,
  resource: LimitedResource,
  orgId: string,
): Promise<void> {
  const limit = limits[resource === 'invitations' ? 'members' : resource];
  if (limit === 0 || (await lockAndCount(client, resource, orgId, limit)) < limit) return;
  throw limitExceeded(`the organization has ${limit.toLocaleString('en')} ${NAMES[resource]}, which is its limit`);
}

/**
 * Creates an object in its own transaction if the organization may have one more.
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
