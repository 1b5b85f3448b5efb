import { digest } from '../lib/digest.ts';
import { requireAddress } from '../domain/email/address.ts';
import { ServiceError } from '../domain/errors.ts';
import { newId } from '../lib/ids.ts';
import { insertAudit } from '../store/accounts/audit.ts';
import {
  deleteInvitation,
  deleteInvitationsTo,
  findInvitation,
  insertInvitation,
  type Invitation,
  listInvitationsOf,
  redeemInvitation,
} from '../store/accounts/invitations.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import { findMember, findUser, findUserByEmail, type Role, type User } from '../store/accounts/users.ts';
import { lockLimit } from '../store/accounts/organization-limits.ts';
import { type OrganizationLimits, requireCapacity, UNLIMITED_ORGANIZATION } from './organization-limits.ts';
import { newToken } from './sign-in.ts';
import { addUser, joinOrganization, alreadyMember, newUser } from './users.ts';

/**
 * Creates an invitation that expires after 7 days, and deletes earlier ones to the address.
 * @returns the invitation's id and the token for its link, which is not stored
 * @throws ServiceError validation_error, conflict if a member has the address, or limit_exceeded
 */
export async function invite(
  pool: Pool,
  orgId: string,
  email: string,
  role: Role,
  limits = UNLIMITED_ORGANIZATION,
): Promise<{ id: string; email: string; token: string }> {
  const address = requireAddress(email, 'email');
  const existing = await findUserByEmail(pool, address);
  if (existing && (await findMember(pool, orgId, existing.id))) throw alreadyMember();
  const [id, token] = [newId('inv'), newToken()];
  await transaction(pool, async (client) => {
    // Locked before the row, as by the acceptance of an invitation.
    await lockLimit(client, 'members', orgId);
    // Delete an earlier invitation first, so that it does not count against the limit.
    await deleteInvitationsTo(client, orgId, address);
    await requireCapacity(client, limits, 'invitations', orgId);
    await insertInvitation(client, { id, org_id: orgId, email: address, role }, digest(token));
  });
  return { id, email: address, token };
}

/** @throws ServiceError not_found */
export async function revokeInvitation(db: Db, orgId: string, id: string): Promise<void> {
  if (!(await deleteInvitation(db, orgId, id))) throw new ServiceError('not_found', 'there is no such invitation');
}

/** Finds a pending invitation. @throws ServiceError not_found */
export async function requireInvitation(db: Db, token: string): Promise<Invitation> {
  const invitation = await findInvitation(db, digest(token));
  if (!invitation) throw new ServiceError('not_found', 'this invitation has expired, was used or was revoked');
  return invitation;
}

/**
 * Accepts an invitation by the token of its link.
 * @param who the signed-in user, or the name and password of a new user
 * @returns the user's id
 * @throws ServiceError not_found, validation_error, limit_exceeded; conflict if it is for another address, if the address of
 * the user was never confirmed, or if a new user has a password although the organization requires OpenID Connect
 */
export async function acceptInvitation(
  pool: Pool,
  token: string,
  who: User | { readonly name: string; readonly password: string },
  limits = UNLIMITED_ORGANIZATION,
): Promise<{ userId: string; invitation: Invitation }> {
  const invitation = await requireInvitation(pool, token);
  const { email } = invitation;
  if ('id' in who && who.email !== email) {
    throw new ServiceError('conflict', `this invitation is for ${email}: sign in with that address`);
  }
  // Another person may know the password of such an account or have linked an identity to it. `takeOver` removes both before it
  // confirms the address.
  if ('id' in who && !(await findUser(pool, who.id))?.proved_at) {
    throw new ServiceError('conflict', `the account of ${email} was never confirmed: reset its password first`);
  }
  if (!('id' in who) && invitation.requires_oidc) {
    throw new ServiceError('conflict', 'the organization requires sign-in by OpenID Connect: sign in to accept');
  }
  const owner = { email, orgId: invitation.org_id };
  const added = 'id' in who ? undefined : await newUser(pool, { ...owner, name: who.name }, who.password);
  const user = added ?? (who as User);
  await transaction(pool, async (client) => {
    await requireCapacity(client, limits, 'members', invitation.org_id);
    // Only the holder of the address knows the link of an emailed invitation.
    if (added) await addUser(client, added, invitation.emailed);
    await useInvitation(client, invitation, user.id);
  });
  return { userId: user.id, invitation };
}

/**
 * Accepts an invitation to a signed-in user whose address was confirmed.
 * @throws ServiceError not_found, conflict if the user is a member already, limit_exceeded
 */
export async function acceptOwnInvitation(
  pool: Pool,
  user: User,
  id: string,
  limits: OrganizationLimits,
): Promise<Invitation> {
  return transaction(pool, async (client) => {
    const invitation = await requireOwnInvitation(client, user, id);
    await requireCapacity(client, limits, 'members', invitation.org_id);
    await useInvitation(client, invitation, user.id);
    return invitation;
  });
}

/** Declines an invitation to a signed-in user whose address was confirmed. @throws ServiceError not_found */
export async function declineInvitation(pool: Pool, user: User, id: string): Promise<Invitation> {
  return transaction(pool, async (client) => {
    const invitation = await requireOwnInvitation(client, user, id);
    await revokeInvitation(client, invitation.org_id, id);
    await auditInvitation(client, invitation, 'members.decline', user.id);
    return invitation;
  });
}

async function requireOwnInvitation(db: Db, user: User, id: string): Promise<Invitation> {
  const invitation = (await listInvitationsOf(db, user.id)).find((each) => each.id === id);
  if (!invitation) throw new ServiceError('not_found', 'there is no such invitation');
  return invitation;
}

async function useInvitation(db: Db, invitation: Invitation, userId: string): Promise<void> {
  if (!(await redeemInvitation(db, invitation.id))) {
    throw new ServiceError('not_found', 'this invitation was used or revoked');
  }
  await joinOrganization(db, invitation.org_id, userId, invitation.role);
  await auditInvitation(db, invitation, 'members.join', userId);
}

async function auditInvitation(
  db: Db,
  { org_id, email, role }: Invitation,
  action: string,
  userId: string,
): Promise<void> {
  const actor = { actor_kind: 'user', actor_id: userId } as const;
  await insertAudit(db, { org_id, ...actor, action, target: userId, detail: { email, role } });
}
