import { createHash, randomBytes } from 'node:crypto';
import { ServiceError } from '../domain/errors.ts';
import { newId } from '../domain/ids.ts';
import { controlProblem } from '../domain/text.ts';
import { insertKey, insertOrganization, organizationExists, type Preset, revokeKey } from '../store/accounts.ts';
import { findDomains } from '../store/domains.ts';
import { type Db, type Pool, transaction } from '../store/pool.ts';
import { domainName } from './domain-name.ts';

const API_KEY = /^sw_live_([0-9a-z]{26})_([0-9a-f]{64})$/;

/** The id and the secret part of an API key, or undefined when it does not look like one. */
export function parseApiKey(apiKey: string): { id: string; secret: string } | undefined {
  const match = API_KEY.exec(apiKey);
  return match ? { id: `key_${match[1]}`, secret: match[2] as string } : undefined;
}

/** A new organization with a key that may do everything; the key is shown here and never again. */
export async function createOrganization(
  pool: Pool,
  name: string,
): Promise<{ id: string; name: string; api_key: string }> {
  const problem = name.trim() === '' ? 'must not be empty' : controlProblem(name);
  if (problem) throw new ServiceError('validation_error', problem, 'name');
  const id = newId('org', Date.now());
  return transaction(pool, async (client) => {
    await insertOrganization(client, id, name.trim());
    const { api_key } = await storeKey(client, id, 'full_access', null);
    return { id, name: name.trim(), api_key };
  });
}

/**
 * A new API key, shown here and never again.
 * @param domains names of the only domains it may send from; none at all means every one
 * @throws ServiceError not_found for an unknown organization, domain_not_found for an unknown domain
 */
export async function createKey(
  db: Db,
  orgId: string,
  preset: Preset,
  domains: readonly string[],
): Promise<{ id: string; api_key: string }> {
  await requireOrganization(db, orgId);
  const names = domains.map((domain) => domainName(domain, 'domain'));
  const found = await findDomains(db, orgId, names);
  const missing = names.find((name) => !found.some((domain) => domain.name === name));
  if (missing) throw new ServiceError('domain_not_found', `the organization has no domain ${missing}`, 'domain');
  return storeKey(db, orgId, preset, domains.length > 0 ? found.map(({ id }) => id) : null);
}

async function storeKey(db: Db, orgId: string, preset: Preset, domainIds: string[] | null) {
  const id = newId('key', Date.now());
  const secret = randomBytes(32).toString('hex');
  const sha256 = createHash('sha256').update(secret).digest();
  await insertKey(db, { id, org_id: orgId, preset, domain_ids: domainIds, sha256 });
  return { id, api_key: `sw_live_${id.slice('key_'.length)}_${secret}` };
}

/**
 * Ends a key at once.
 * @param key its id, or the key itself
 * @throws ServiceError not_found
 */
export async function endKey(db: Db, key: string): Promise<{ id: string }> {
  const id = parseApiKey(key)?.id ?? key;
  if (!(await revokeKey(db, id))) throw new ServiceError('not_found', 'there is no such key', 'key');
  return { id };
}

/** @throws ServiceError not_found */
export async function requireOrganization(db: Db, orgId: string): Promise<void> {
  if (await organizationExists(db, orgId)) return;
  throw new ServiceError('not_found', `there is no organization ${orgId}`, 'organization');
}
