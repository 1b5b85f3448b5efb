import { noOrganization, refuseProblem } from '../domain/errors.ts';
import { newId } from '../lib/ids.ts';
import { characters, controlProblem } from '../lib/text.ts';
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

/** Renames an organization for its owner. @throws ServiceError validation_error, not_found */
export async function renameOrganization(db: Db, orgId: string, name: string): Promise<void> {
  refuseProblem(chosenNameProblem(name.trim()), 'name');
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

const MAX_CHOSEN_NAME_LENGTH = 60;
/** A dot between two characters of a word, also in the forms that mail programs make links of (UTS #46, full stops). */
const DOT_WORD = /[\p{L}\p{N}][.\u3002\uff0e\uff61][\p{L}\p{N}]/u;

/**
 * Returns why owners may not choose a name, or undefined. The operator sends it to strangers in invitations, so it must not contain
 * what mail programs make links of. Names that the operator chose, or that are older than this rule, may.
 */
export function chosenNameProblem(name: string): string | undefined {
  if (characters(name) > MAX_CHOSEN_NAME_LENGTH) return `must be at most ${MAX_CHOSEN_NAME_LENGTH} characters`;
  const visible = name.normalize('NFKC').replace(/\p{Default_Ignorable_Code_Point}/gu, '');
  if (!/[@\uff20]|:\/\//.test(visible) && !DOT_WORD.test(visible)) return undefined;
  return 'must not contain a URL, a domain or an email address';
}

function organizationName(text: string): string {
  refuseProblem(text.trim() === '' ? 'must not be empty' : controlProblem(text), 'name');
  return text.trim();
}

/** @throws ServiceError not_found */
export async function requireOrganization(db: Db, orgId: string): Promise<void> {
  if (!(await organizationExists(db, orgId))) throw noOrganization(orgId);
}
