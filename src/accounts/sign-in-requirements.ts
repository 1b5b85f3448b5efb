import { noOrganization, ServiceError } from '../domain/errors.ts';
import {
  clearOidcRequirement,
  setSignInRequirements,
  type SignInRequirements,
} from '../store/accounts/organizations.ts';
import type { Db } from '../store/postgres/pool.ts';

/**
 * Sets what members must do to access an organization. Only an owner who has signed in by OpenID Connect can require it:
 * otherwise all members might be locked out.
 * @param byOidc true if the owner has signed in by OpenID Connect
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

/** Allows sign-in by password again, for when the identity provider locks members out. @throws ServiceError not_found */
export async function allowPasswords(db: Db, orgId: string): Promise<{ id: string; requires_oidc: false }> {
  if (!(await clearOidcRequirement(db, orgId))) throw noOrganization(orgId);
  return { id: orgId, requires_oidc: false };
}
