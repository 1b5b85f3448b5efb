import { noOrganization, ServiceError } from '../domain/errors.ts';
import {
  clearOidcRequirement,
  setSignInRequirements,
  type SignInRequirements,
} from '../store/accounts/organizations.ts';
import type { Db } from '../store/postgres/pool.ts';

/**
 * Sets what members must do to open an organization. Only an owner who has signed in by OpenID Connect can require that:
 * otherwise perhaps nobody could open the organization any more.
 * @param byOidc whether the owner has signed in so
 * @throws ServiceError validation_error
 */
export async function requireOfMembers(
  db: Db,
  orgId: string,
  required: SignInRequirements,
  byOidc: boolean,
): Promise<void> {
  if (required.requires_oidc && !byOidc) {
    throw new ServiceError(
      'validation_error',
      'can only be required by an owner who has signed in that way; sign in through the identity provider first',
      'oidc',
    );
  }
  await setSignInRequirements(db, orgId, required);
}

/** Lets members sign in by password again, when the identity provider locks them out. @throws ServiceError not_found */
export async function allowPasswords(db: Db, orgId: string): Promise<{ id: string; requires_oidc: false }> {
  if (!(await clearOidcRequirement(db, orgId))) throw noOrganization(orgId);
  return { id: orgId, requires_oidc: false };
}
