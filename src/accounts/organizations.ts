import { noOrganization, refuseProblem } from '../domain/errors.ts';
import { newId } from '../lib/ids.ts';
import { controlProblem } from '../lib/text.ts';
import { insertOrganization, organizationExists, setOrganizationName } from '../store/accounts/organizations.ts';
import { setBodyRetention } from '../store/emails/content-erasure.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import { issueKey } from './keys.ts';

/** Creates an organization and an API key with all permissions. The response contains the only copy of the key. */
export async function createOrganization(
  pool: Pool,
  name: string,
): Promise<{ id: string; name: string; api_key: string }> {
  const trimmed = organizationName(name);
  const id = newId('org');
  return transaction(pool, async (client) => {
    await insertOrganization(client, id, trimmed);
    const { api_key } = await issueKey(client, id, { preset: 'full_access' });
    return { id, name: trimmed, api_key };
  });
}

/** @throws ServiceError validation_error, not_found */
export async function renameOrganization(db: Db, orgId: string, name: string): Promise<void> {
  if (!(await setOrganizationName(db, orgId, organizationName(name)))) throw noOrganization(orgId);
}

/**
 * Sets the retention of bodies of an organization for the operator.
 * @param days 0 is forever, null is the setting `BODY_RETENTION_DAYS`
 * @throws ServiceError not_found
 */
export async function changeBodyRetention(db: Db, orgId: string, days: number | null): Promise<void> {
  if (!(await setBodyRetention(db, orgId, days))) throw noOrganization(orgId);
}

function organizationName(text: string): string {
  refuseProblem(text.trim() === '' ? 'must not be empty' : controlProblem(text), 'name');
  return text.trim();
}

/** @throws ServiceError not_found */
export async function requireOrganization(db: Db, orgId: string): Promise<void> {
  if (!(await organizationExists(db, orgId))) throw noOrganization(orgId);
}
