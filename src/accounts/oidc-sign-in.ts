import { ServiceError } from '../domain/errors.ts';
import { digest } from '../lib/digest.ts';
import { hasInvitation } from '../store/accounts/invitations.ts';
import { deleteIdentities, findIdentityUser, insertIdentity } from '../store/accounts/oidc-identities.ts';
import {
  deleteOtherSessions,
  findSession,
  type OrganizationOfUser,
  type SessionClient,
} from '../store/accounts/sessions.ts';
import { findUserByEmail, lockPassword, type User } from '../store/accounts/users.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import type { OidcIdentity } from './oidc.ts';
import { generatePassword } from './passwords.ts';
import { auditByUser } from './audit.ts';
import { auditFailure, createRecordedSession } from './sign-in.ts';
import { addUser, newPasswordHash, newUser, recoverAccount, requirePassword } from './users.ts';

interface OidcSignIn {
  /** The token of the session. */
  readonly token: string;
  readonly userId: string;
  /** True if the user was just created and is not a member of any organization yet. */
  readonly isNew: boolean;
}

/**
 * Starts a session for an identity. A new identity is linked to the user with its verified address, or to a new user if the
 * address is invited. The issuer is responsible for a second factor.
 * @throws ServiceError insufficient_scope if no user can be linked
 */
export async function signInByOidc(
  pool: Pool,
  identity: OidcIdentity,
  { address, userAgent }: SessionClient,
): Promise<OidcSignIn> {
  const linked = await findIdentityUser(pool, identity);
  const { user, isNew } = linked ? { user: linked, isNew: false } : await linkIdentity(pool, identity, address);
  const token = await transaction(pool, async (client) => {
    // The identity may have been removed meanwhile, together with the sessions of its user.
    if ((await findIdentityUser(client, identity))?.id !== user.id) throw signInRefused('the identity was unlinked');
    return createRecordedSession(client, user, { address, userAgent, byOidc: true }, { address, oidc: true });
  });
  return { token, userId: user.id, isNew };
}

async function linkIdentity(
  pool: Pool,
  identity: OidcIdentity,
  address: string,
): Promise<{ user: User; isNew: boolean }> {
  const { email } = identity;
  if (email === null) throw signInRefused('your identity provider does not confirm your email address');
  const existing = await findUserByEmail(pool, email);
  if (existing) {
    // The account's address was never confirmed: another person may have created it from an invitation link and know its
    // password.
    const hash = existing.proved_at === null ? await newPasswordHash(pool, existing, generatePassword()) : undefined;
    const isLinked = await transaction(pool, async (client) => {
      // First, because that deletes an identity that the other person may have linked.
      if (hash !== undefined) await recoverAccount(client, existing, hash);
      return link(client, identity, existing);
    });
    if (isLinked) return { user: existing, isNew: false };
    // The issuer may have reassigned the address to another person, who must not get the account.
    await auditFailure(pool, existing, { address, oidc: true, reason: 'another identity is linked' });
    throw signInRefused(
      `another identity is linked to the account of ${email}; ask the operator of this service to unlink it`,
    );
  }
  if (!(await hasInvitation(pool, email)))
    throw signInRefused(`no account has the address ${email}; ask for an invitation`);
  const added = await newUser(pool, { email, name: '' }, generatePassword());
  await transaction(pool, async (client) => {
    await addUser(client, added, true);
    await link(client, identity, added);
  });
  return { user: added, isNew: true };
}

/**
 * Links an identity to a signed-in user who has authenticated at the issuer. Their addresses may differ, unless an organization
 * of the user requires OpenID Connect: there, a password alone must not open it by another person's identity.
 * @param session the one in which the link was begun, with the organizations of the user
 * @throws ServiceError conflict, unauthorized if the session has ended
 */
export async function linkToUser(
  pool: Pool,
  identity: OidcIdentity,
  session: { readonly user: User; readonly organizations: readonly OrganizationOfUser[]; readonly token: string },
): Promise<void> {
  const { user, organizations, token } = session;
  const strict = findStrict(organizations);
  if (strict && identity.email !== user.email) {
    throw new ServiceError(
      'conflict',
      `${strict.name} requires sign-in by OpenID Connect: only an identity with the verified address ${user.email} can be linked`,
    );
  }
  const isLinked = await transaction(pool, async (client) => {
    // A takeover of the account replaces the password first. So it either removes the identity or has ended the session.
    await lockPassword(client, user.id);
    if (!(await findSession(client, digest(token)))) throw new ServiceError('unauthorized', 'your session has ended');
    return link(client, identity, user);
  });
  if (isLinked) return;
  const owner = await findIdentityUser(pool, identity);
  if (owner?.id === user.id) return;
  throw new ServiceError(
    'conflict',
    owner ? 'this identity is linked to another user' : 'another identity is linked to your account; unlink it first',
  );
}

/**
 * Unlinks the identity of a signed-in user and ends the other sessions.
 * @param organizations the organizations of the user
 * @param current the current password; `keep` is the token of the current session
 * @throws ServiceError conflict if an organization of the user requires OpenID Connect, and the errors of `requirePassword`
 */
export async function unlinkFromUser(
  pool: Pool,
  user: User,
  organizations: readonly OrganizationOfUser[],
  { current, keep }: { readonly current: string; readonly keep: string },
): Promise<void> {
  const strict = findStrict(organizations);
  if (strict) throw new ServiceError('conflict', `${strict.name} requires sign-in by OpenID Connect`);
  // A user who does not know the password could not sign in afterwards.
  await requirePassword(pool, user, current);
  await transaction(pool, async (client) => {
    await deleteIdentities(client, user.id);
    await deleteOtherSessions(client, user.id, digest(keep));
    await auditByUser(client, user, 'account.unlink-oidc');
  });
}

/** Returns an organization that requires sign-in by OpenID Connect. */
function findStrict(organizations: readonly OrganizationOfUser[]): OrganizationOfUser | undefined {
  return organizations.find(({ requires_oidc: isRequired }) => isRequired);
}

/** @returns false if the identity is linked already, or the user has another identity of the issuer */
async function link(db: Db, identity: OidcIdentity, user: User): Promise<boolean> {
  if (!(await insertIdentity(db, identity, user.id))) return false;
  await auditByUser(db, user, 'account.link-oidc', { issuer: identity.issuer });
  return true;
}

function signInRefused(why: string): ServiceError {
  return new ServiceError('insufficient_scope', why);
}
