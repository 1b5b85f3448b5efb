import { parseDomain } from '../domain/address.ts';
import { ServiceError } from '../domain/errors.ts';
import { newId } from '../domain/ids.ts';
import { controlProblem } from '../domain/text.ts';
import { type Domain, insertDomain, insertOrganization, organizationExists } from '../store/accounts.ts';
import { type Db, isDuplicate, type Pool, transaction } from '../store/pool.ts';
import { issueKey } from './keys.ts';

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
    const { api_key } = await issueKey(client, id, { preset: 'full_access' });
    return { id, name: name.trim(), api_key };
  });
}

/**
 * Registers a domain to send from.
 * @param verified taken on trust, without looking at DNS
 * @throws ServiceError validation_error, not_found for the organization, or conflict when it or another one has it
 */
export async function addDomain(db: Db, orgId: string, name: string, verified: boolean): Promise<Domain> {
  await requireOrganization(db, orgId);
  const inserting = insertDomain(db, newId('dm', Date.now()), orgId, domainName(name, 'name'), verified);
  const domain = await inserting.catch((error: unknown) => {
    if (!isDuplicate(error)) throw error;
  });
  if (!domain) throw new ServiceError('conflict', `the domain ${name} is registered already`, 'name');
  return domain;
}

/** @throws ServiceError not_found */
export async function requireOrganization(db: Db, orgId: string): Promise<void> {
  if (await organizationExists(db, orgId)) return;
  throw new ServiceError('not_found', `there is no organization ${orgId}`, 'organization');
}

function domainName(text: string, param: string): string {
  const name = parseDomain(text.trim());
  if (name === undefined) throw new ServiceError('validation_error', `${text} is not a domain name`, param);
  return name;
}
