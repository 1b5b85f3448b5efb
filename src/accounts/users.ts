import { requireAddress } from '../domain/email/address.ts';
import { digest } from '../lib/digest.ts';
import { refuseProblem, ServiceError } from '../domain/errors.ts';
import { newId } from '../lib/ids.ts';
import { characters, controlProblem, formatWait } from '../lib/text.ts';
import { insertAudit } from '../store/accounts/audit.ts';
import { deleteInvitationsTo, insertInvitation } from '../store/accounts/invitations.ts';
import { type Db, isDuplicate, type Pool, transaction } from '../store/postgres/pool.ts';
import { hasOidcOrganization } from '../store/accounts/organizations.ts';
import { deleteIdentities } from '../store/accounts/oidc-identities.ts';
import { deleteSecondFactor } from '../store/accounts/second-factors.ts';
import { deleteOtherSessions } from '../store/accounts/sessions.ts';
import {
  deleteMembership,
  findMember,
  findUser,
  findUserByEmail,
  insertMembership,
  insertUser,
  lockOwners,
  lockPassword,
  type Member,
  type Role,
  setMemberRole,
  setPassword,
  markEmailVerified,
  setUserName,
  type User,
  type UserWithPassword,
} from '../store/accounts/users.ts';
import { requireOrganization } from './organizations.ts';
import { auditByUser, OPERATOR } from './audit.ts';
import { type PasswordOwner, requireGoodPassword } from './password-rules.ts';
import { generatePassword, hashPassword, isPassword } from './passwords.ts';
import { clearPasswordLimits, countCheck, resetChecks } from './sign-in-limits.ts';
import { newToken } from './sign-in.ts';

const MAX_NAME_LENGTH = 200;

interface UserRequest {
  readonly email: string;
  /** Undefined generates a password; the result contains the only copy. */
  readonly password?: string | undefined;
  /** Defaults to owner for a new user and member for an existing one. */
  readonly role?: Role | undefined;
  /** Recovers an account whose address was never confirmed: sets a new password and ends its sessions. */
  readonly resetPassword?: boolean;
}

/** A new member, or an existing user with an invitation. */
interface CreatedUser {
  readonly id: string;
  readonly email: string;
  /** Only a generated password. */
  readonly password?: string;
  readonly invitation?: { readonly id: string; readonly role: Role; readonly expires_at: string };
}

/**
 * Adds a user to an organization for the operator, who thereby confirms the address. An existing user with a confirmed address
 * gets an invitation instead, to accept when signed in. An account with an unconfirmed address was created from an invitation
 * link and may belong to another person, so it needs `resetPassword` to join.
 * @throws ServiceError validation_error, not_found for the organization, conflict if the user is a member already or the options
 * do not apply to the existing account
 */
export async function createUser(
  pool: Pool,
  orgId: string,
  { email, password, role, resetPassword = false }: UserRequest,
): Promise<CreatedUser> {
  await requireOrganization(pool, orgId);
  const address = requireAddress(email, 'email');
  const existing = await findUserByEmail(pool, address);
  if (existing && (await findMember(pool, orgId, existing.id))) throw alreadyMember();
  if (existing && !existing.proved_at && !resetPassword) {
    throw new ServiceError(
      'conflict',
      'has an account that was created from an invitation link, perhaps by another person; with --reset-password it gets a ' +
        'new password and its sessions end',
      'email',
    );
  }
  if (existing?.proved_at) return inviteExisting(pool, orgId, existing, { password, role, resetPassword });

  const chosen = password ?? generatePassword();
  const user = await newUser(pool, { email: address, name: '', orgId }, chosen);
  const joinedRole = role ?? (existing ? 'member' : 'owner');
  const id = existing?.id ?? user.id;
  await transaction(pool, async (client) => {
    if (existing) await recoverAccount(client, existing, user.password);
    else await addUser(client, user, true);
    await joinOrganization(client, orgId, id, joinedRole);
    await deleteInvitationsTo(client, orgId, address);
    const detail = { email: address, role: joinedRole, ...(existing && { password_reset: true }) };
    await insertAudit(client, { org_id: orgId, ...OPERATOR, action: 'members.create', target: id, detail });
  });
  return { id, email: address, ...(password === undefined && { password: chosen }) };
}

async function inviteExisting(
  pool: Pool,
  orgId: string,
  { id, email }: User,
  { password, role = 'member', resetPassword }: Omit<UserRequest, 'email'>,
): Promise<CreatedUser> {
  if (password !== undefined) {
    throw new ServiceError('conflict', 'has a password already; add the user without one', 'email');
  }
  if (resetPassword) {
    throw new ServiceError('conflict', 'has a confirmed account; add the user without --reset-password', 'email');
  }
  return transaction(pool, async (client) => {
    const invitation = { id: newId('inv'), org_id: orgId, email, role };
    // The token is discarded, because the signed-in user accepts the invitation by its id.
    const expires_at = await insertInvitation(client, invitation, digest(newToken()));
    const change = { action: 'members.invite', target: invitation.id, detail: { email, role } };
    await insertAudit(client, { org_id: orgId, ...OPERATOR, ...change });
    return { id, email, invitation: { id: invitation.id, role, expires_at } };
  });
}

/**
 * Sets the password, confirms the address, clears limits on wrong passwords and ends all sessions. Unlinks identities, because a
 * person who knew the former password may have linked one; they stay if an organization of the user requires OpenID Connect. If
 * the address was not confirmed before, it removes the second factor and the identities in any case.
 * @returns the number of ended sessions
 */
export async function recoverAccount(db: Db, { id, email }: User, passwordHash: string): Promise<number> {
  await setPassword(db, id, passwordHash);
  // The address was never confirmed: remove what another person may have added, which would lock out the holder of the address.
  const isEmailVerified = Boolean((await findUser(db, id))?.proved_at);
  if (!isEmailVerified) await deleteSecondFactor(db, id);
  // Such an organization would be closed to a user whose identity cannot be linked again, as one without a verified address.
  if (!isEmailVerified || !(await hasOidcOrganization(db, id))) await deleteIdentities(db, id);
  await markEmailVerified(db, id);
  await clearPasswordLimits(db, email);
  return deleteOtherSessions(db, id, null);
}

/**
 * Prepares a new user for `addUser`, with an id and the hash of the password. Call it before a transaction starts, because hashing
 * is slow.
 * @throws ServiceError validation_error, unavailable
 */
export async function newUser(
  db: Db,
  owner: PasswordOwner,
  password: string,
): Promise<Omit<UserWithPassword, 'proved_at'>> {
  const { email, name } = owner;
  return { id: newId('usr'), email, name: userName(name), password: await newPasswordHash(db, owner, password) };
}

/** Hashes a good password. @throws ServiceError validation_error, unavailable */
export async function newPasswordHash(db: Db, owner: PasswordOwner, password: string): Promise<string> {
  await requireGoodPassword(db, password, owner);
  return hashPassword(password);
}

export async function addUser(
  db: Db,
  user: Omit<UserWithPassword, 'proved_at'>,
  isEmailVerified: boolean,
): Promise<void> {
  await insertUser(db, user, isEmailVerified).catch((error: unknown) => {
    throw isDuplicate(error) ? new ServiceError('conflict', 'is a user already', 'email') : error;
  });
}

export async function joinOrganization(db: Db, orgId: string, userId: string, role: Role): Promise<void> {
  if (await insertMembership(db, orgId, userId, role)) return;
  throw alreadyMember();
}

export function alreadyMember(): ServiceError {
  return new ServiceError('conflict', 'is a member of the organization already', 'email');
}

function userName(text: string): string {
  const name = text.trim();
  const problem =
    characters(name) > MAX_NAME_LENGTH ? `must be at most ${MAX_NAME_LENGTH} characters` : controlProblem(name);
  refuseProblem(problem, 'name');
  return name;
}

/** @throws ServiceError validation_error */
export async function renameUser(db: Db, userId: string, name: string): Promise<void> {
  await setUserName(db, userId, userName(name));
}

/**
 * Changes a password and ends the user's other sessions.
 * @param keep the token of the session that remains
 * @throws ServiceError validation_error if the current password is wrong or the new one is not allowed; rate_limit_exceeded after
 * too many wrong current passwords
 */
export async function changePassword(
  pool: Pool,
  user: User,
  passwords: { readonly current: string; readonly password: string },
  keep: string,
): Promise<void> {
  await requireGoodPassword(pool, passwords.password, user);
  const currentHash = await requirePassword(pool, user, passwords.current);
  const hash = await hashPassword(passwords.password, user.id);
  await transaction(pool, async (client) => {
    // A reset may have replaced the password since it was checked. A person who knew the former one must not undo the reset.
    if ((await lockPassword(client, user.id)) !== currentHash) throw wrongPassword();
    await setPassword(client, user.id, hash);
    await deleteOtherSessions(client, user.id, digest(keep));
    await auditByUser(client, user, 'account.password');
  });
}

/**
 * Checks the current password of a signed-in user.
 * @returns its hash
 * @throws ServiceError validation_error if it is wrong, rate_limit_exceeded after too many wrong ones
 */
export async function requirePassword(db: Db, { id, email }: User, current: string): Promise<string> {
  const { waitSeconds, waitSecondsOfDay: seconds = waitSeconds } = await countCheck(db, 'password', { id, email });
  if (seconds !== undefined) {
    const message = `the current password was wrong too often; try again in ${formatWait(seconds)}`;
    throw new ServiceError('rate_limit_exceeded', message, undefined, seconds);
  }
  const user = await findUser(db, id);
  if (!user || !(await isPassword(current, user.password, id))) throw wrongPassword();
  await resetChecks(db, 'password', { id, email });
  return user.password;
}

function wrongPassword(): ServiceError {
  return new ServiceError('validation_error', 'is not your password', 'current');
}

/** @throws ServiceError not_found */
export async function requireMember(db: Db, orgId: string, userId: string): Promise<Member> {
  const member = await findMember(db, orgId, userId);
  if (!member) throw noMember();
  return member;
}

/** Changes a member's role. @throws ServiceError not_found, conflict if no owner would remain */
export async function setRole(pool: Pool, orgId: string, userId: string, role: Role): Promise<void> {
  await transaction(pool, async (client) => {
    if (role !== 'owner') await keepAnOwner(client, orgId, userId);
    if (!(await setMemberRole(client, orgId, userId, role))) throw noMember();
  });
}

/** Removes a member, who cannot return by an earlier invitation. @throws ServiceError not_found, conflict if no owner would remain */
export async function removeMember(pool: Pool, orgId: string, userId: string): Promise<void> {
  await transaction(pool, async (client) => {
    await keepAnOwner(client, orgId, userId);
    const { email } = await requireMember(client, orgId, userId);
    if (!(await deleteMembership(client, orgId, userId))) throw noMember();
    await deleteInvitationsTo(client, orgId, email);
  });
}

async function keepAnOwner(db: Db, orgId: string, userId: string): Promise<void> {
  const owners = await lockOwners(db, orgId);
  if (owners.length === 1 && owners[0] === userId) {
    throw new ServiceError('conflict', 'an organization needs an owner: make another member an owner first');
  }
}

function noMember(): ServiceError {
  return new ServiceError('not_found', 'the organization has no such member');
}
