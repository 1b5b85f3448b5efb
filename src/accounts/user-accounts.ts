import { requireAddress } from '../domain/email/address.ts';
import { ServiceError } from '../domain/errors.ts';
import { insertAudit, insertAuditOfUser } from '../store/accounts/audit.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import { deleteIdentities } from '../store/accounts/oidc-identities.ts';
import { deleteSecondFactor } from '../store/accounts/second-factors.ts';
import { deleteOtherSessions } from '../store/accounts/sessions.ts';
import {
  deleteMembership,
  deleteUser,
  findUser,
  findUserByEmail,
  type ListedUser,
  listUsers,
  lockMemberships,
  lockOwners,
  type User,
} from '../store/accounts/users.ts';
import { requireOrganization } from './organizations.ts';
import { OPERATOR } from './audit.ts';
import { generatePassword } from './passwords.ts';
import { unlock } from './sign-in-limits.ts';
import { newPasswordHash, recoverAccount } from './users.ts';

/** Identifies a user in the operator's commands. */
export type UserName = { readonly id: string } | { readonly email: string };

/** @throws ServiceError not_found, validation_error for an invalid address */
async function requireUser(db: Db, name: UserName): Promise<User> {
  const user =
    'id' in name ? await findUser(db, name.id) : await findUserByEmail(db, requireAddress(name.email, 'email'));
  if (!user) throw new ServiceError('not_found', 'there is no such user', 'id' in name ? 'user' : 'email');
  return { id: user.id, email: user.email, name: user.name };
}

/** Lists all users, or the members of one organization. @throws ServiceError not_found for the organization */
export async function showUsers(db: Db, orgId: string | null): Promise<ListedUser[]> {
  if (orgId !== null) await requireOrganization(db, orgId);
  return listUsers(db, orgId);
}

/**
 * Takes the account over with a new password. The operator gives the password to the user and thereby confirms the address.
 * @param password undefined generates one; the result contains the only copy
 * @throws ServiceError not_found, validation_error
 */
export async function resetUser(
  pool: Pool,
  name: UserName,
  password?: string,
): Promise<{ id: string; email: string; password?: string; sessions_ended: number }> {
  const user = await requireUser(pool, name);
  const { id, email } = user;
  const chosen = password ?? generatePassword();
  const hash = await newPasswordHash(pool, user, chosen);
  return transaction(pool, async (client) => {
    const sessions = await recoverAccount(client, user, hash);
    await auditByOperator(client, id, 'members.reset', { email, sessions });
    return { id, email, ...(password === undefined && { password: chosen }), sessions_ended: sessions };
  });
}

/** Clears the sign-in limits of a user. @throws ServiceError not_found */
export async function unlockUser(pool: Pool, name: UserName): Promise<{ id: string; email: string; cleared: number }> {
  const { id, email } = await requireUser(pool, name);
  return transaction(pool, async (client) => {
    const cleared = await unlock(client, email);
    await auditByOperator(client, id, 'members.unlock', { email });
    return { id, email, cleared };
  });
}

/** Removes the second factor of a user who has lost it and the recovery codes. @throws ServiceError not_found */
export async function removeSecondFactor(
  pool: Pool,
  name: UserName,
): Promise<{ id: string; email: string; removed: boolean }> {
  const { id, email } = await requireUser(pool, name);
  return transaction(pool, async (client) => {
    const removed = await deleteSecondFactor(client, id);
    await auditByOperator(client, id, 'members.reset-second-factor', { email, removed });
    return { id, email, removed };
  });
}

/**
 * Unlinks a user's OpenID Connect identity and ends the user's sessions. At the next sign-in, an identity with the user's
 * verified address is linked.
 * @throws ServiceError not_found
 */
export async function unlinkOidc(
  pool: Pool,
  name: UserName,
): Promise<{ id: string; email: string; removed: number; sessions_ended: number }> {
  const { id, email } = await requireUser(pool, name);
  return transaction(pool, async (client) => {
    const removed = await deleteIdentities(client, id);
    const sessions = await deleteOtherSessions(client, id, null);
    await auditByOperator(client, id, 'members.unlink-oidc', { email, removed, sessions });
    return { id, email, removed, sessions_ended: sessions };
  });
}

/** Ends all sessions of a user. @throws ServiceError not_found */
export async function signUserOut(
  pool: Pool,
  name: UserName,
): Promise<{ id: string; email: string; sessions_ended: number }> {
  const { id, email } = await requireUser(pool, name);
  return transaction(pool, async (client) => {
    const sessions = await deleteOtherSessions(client, id, null);
    await auditByOperator(client, id, 'members.sign-out', { email, sessions });
    return { id, email, sessions_ended: sessions };
  });
}

/**
 * Deletes a user with all memberships and sessions. The audit log keeps the user's id.
 * @param isForced allows an organization to remain without an owner
 * @throws ServiceError not_found, conflict if the user is the only owner of an organization
 */
export async function removeUser(
  pool: Pool,
  name: UserName,
  isForced: boolean,
): Promise<{ id: string; email: string; organizations: string[] }> {
  const user = await requireUser(pool, name);
  return transaction(pool, async (client) => {
    const memberships = await lockMemberships(client, user.id);
    for (const { org_id: orgId } of memberships) {
      const owners = await lockOwners(client, orgId);
      if (!isForced && owners.length === 1 && owners[0] === user.id) {
        throw new ServiceError(
          'conflict',
          `is the only owner of ${orgId}; make another member an owner first, or add --force`,
        );
      }
    }
    for (const { org_id, role } of memberships) {
      const change = { action: 'members.delete', target: user.id, detail: { email: user.email, role } };
      await insertAudit(client, { org_id, ...OPERATOR, ...change });
      await deleteMembership(client, org_id, user.id);
    }
    await deleteOtherSessions(client, user.id, null);
    await unlock(client, user.email);
    await deleteUser(client, user.id);
    return { id: user.id, email: user.email, organizations: memberships.map(({ org_id }) => org_id) };
  });
}

async function auditByOperator(db: Db, id: string, action: string, detail: Record<string, unknown>): Promise<void> {
  await insertAuditOfUser(db, id, { ...OPERATOR, action, target: id, detail });
}
