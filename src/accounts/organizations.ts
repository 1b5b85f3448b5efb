import { noOrganization, ServiceError } from '../domain/errors.ts';
import { newId } from '../domain/ids.ts';
import { controlProblem } from '../lib/text.ts';
import { insertOrganization, organizationExists } from '../store/accounts/organizations.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import { issueKey } from './keys.ts';

/** Creates an organization with an API key with all permissions. The response contains the only copy of the key. */
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

/** @throws ServiceError not_found */
export async function requireOrganization(db: Db, orgId: string): Promise<void> {
  if (!(await organizationExists(db, orgId))) throw noOrganization(orgId);
}
