import { parseMailbox } from '../domain/address.ts';
import { digest } from '../domain/digest.ts';
import { ServiceError } from '../domain/errors.ts';
import { newId } from '../domain/ids.ts';
import { characters, controlProblem } from '../domain/text.ts';
import {
  deleteInvitation,
  findInvitation,
  insertInvitation,
  type Invitation,
  takeInvitation,
} from '../store/invitations.ts';
import { type Db, isDuplicate, type Pool, transaction } from '../store/pool.ts';
import { deleteOtherSessions } from '../store/sessions.ts';
import {
  deleteMembership,
  findMember,
  findUser,
  findUserByEmail,
  insertMembership,
  insertUser,
  lockOwners,
  type Member,
  type Role,
  setMemberRole,
  setPassword,
  setUserName,
  type User,
  type UserWithPassword,
} from '../store/users.ts';
import { requireOrganization } from './accounts.ts';
import { generatePassword, hashPassword, isPassword, passwordProblem } from './passwords.ts';
import { newToken } from './sign-in.ts';

const LONGEST_NAME = 200;

/** A bare address in lower case. @throws ServiceError validation_error */
export function userEmail(text: string): string {
  const mailbox = parseMailbox(text);
  if (typeof mailbox === 'string') throw new ServiceError('validation_error', mailbox, 'email');
  return mailbox.address.toLowerCase();
}

/**
 * A user of an organization. One who is a user of another organization keeps his password and becomes a member.
 * @param password undefined for one that is made up and told here, and never again
 * @throws ServiceError validation_error, not_found for the organization, conflict when he is a member already, or when
 *   a password is given for somebody who has one
 */
export async function createUser(
  pool: Pool,
  orgId: string,
  email: string,
  password?: string,
  role: Role = 'owner',
): Promise<{ id: string; email: string; password?: string }> {
  await requireOrganization(pool, orgId);
  const address = userEmail(email);
  const known = await findUserByEmail(pool, address);
  if (known) {
    if (password !== undefined) {
      throw new ServiceError('conflict', 'has a password already; add the user without one', 'email');
    }
    await join(pool, orgId, known.id, role);
    return { id: known.id, email: address };
  }
  const chosen = password ?? generatePassword();
  const user = await newUser(address, '', chosen);
  await transaction(pool, async (client) => {
    await addUser(client, user);
    await join(client, orgId, user.id, role);
  });
  return { id: user.id, email: address, ...(password === undefined && { password: chosen }) };
}

/** Hashing takes long, so it comes before the transaction. @throws ServiceError validation_error */
async function newUser(email: string, name: string, password: string): Promise<UserWithPassword> {
  const problem = passwordProblem(password);
  if (problem) throw new ServiceError('validation_error', problem, 'password');
  return { id: newId('usr', Date.now()), email, name: userName(name), password: await hashPassword(password) };
}

async function addUser(db: Db, user: UserWithPassword): Promise<void> {
  await insertUser(db, user).catch((error: unknown) => {
    throw isDuplicate(error) ? new ServiceError('conflict', 'is a user already', 'email') : error;
  });
}

async function join(db: Db, orgId: string, userId: string, role: Role): Promise<void> {
  if (await insertMembership(db, orgId, userId, role)) return;
  throw new ServiceError('conflict', 'is a member of the organization already', 'email');
}

function userName(text: string): string {
  const name = text.trim();
  const problem = characters(name) > LONGEST_NAME ? `must be at most ${LONGEST_NAME} characters` : controlProblem(name);
  if (problem) throw new ServiceError('validation_error', problem, 'name');
  return name;
}

/** @throws ServiceError validation_error */
export async function renameUser(db: Db, userId: string, name: string): Promise<void> {
  await setUserName(db, userId, userName(name));
}

/**
 * Changes a password and ends the user's other sessions.
 * @param keep the token of the session that stays
 * @throws ServiceError validation_error when the current one is wrong or the new one will not do
 */
export async function changePassword(
  pool: Pool,
  userId: string,
  given: { readonly current: string; readonly password: string },
  keep: string,
): Promise<void> {
  const problem = passwordProblem(given.password);
  if (problem) throw new ServiceError('validation_error', problem, 'password');
  const user = await findUser(pool, userId);
  if (!(await isPassword(given.current, user?.password))) {
    throw new ServiceError('validation_error', 'is not your password', 'current');
  }
  const hash = await hashPassword(given.password);
  await transaction(pool, async (client) => {
    await setPassword(client, userId, hash);
    await deleteOtherSessions(client, userId, digest(keep));
  });
}

/**
 * Invites an address for 7 days; an earlier invitation of it ends.
 * @returns the invitation's id and the token for its link, which is told here and never again
 * @throws ServiceError validation_error, conflict when it is a member's address
 */
export async function invite(
  pool: Pool,
  orgId: string,
  email: string,
  role: Role,
): Promise<{ id: string; email: string; token: string }> {
  const address = userEmail(email);
  const known = await findUserByEmail(pool, address);
  if (known && (await findMember(pool, orgId, known.id))) {
    throw new ServiceError('conflict', 'is a member of the organization already', 'email');
  }
  const [id, token] = [newId('inv', Date.now()), newToken()];
  await insertInvitation(pool, { id, org_id: orgId, email: address, role }, digest(token));
  return { id, email: address, token };
}

/** @throws ServiceError not_found */
export async function withdrawInvitation(db: Db, orgId: string, id: string): Promise<void> {
  if (!(await deleteInvitation(db, orgId, id))) throw new ServiceError('not_found', 'there is no such invitation');
}

/** An open invitation. @throws ServiceError not_found */
export async function requireInvitation(db: Db, token: string): Promise<Invitation> {
  const invitation = await findInvitation(db, digest(token));
  if (!invitation) throw new ServiceError('not_found', 'this invitation is over, was used or was taken back');
  return invitation;
}

/** Whether there is a user of this address, who need not choose a password. */
export async function isUser(db: Db, email: string): Promise<boolean> {
  return (await findUserByEmail(db, email)) !== undefined;
}

/**
 * Uses an invitation up.
 * @param who the user who is signed in, or name and password of a new one
 * @returns the user's id
 * @throws ServiceError not_found, conflict when it is for somebody else, validation_error
 */
export async function acceptInvitation(
  pool: Pool,
  token: string,
  who: User | { readonly name: string; readonly password: string },
): Promise<{ userId: string; invitation: Invitation }> {
  const invitation = await requireInvitation(pool, token);
  const { org_id: orgId, email, role } = invitation;
  if ('id' in who && who.email !== email) {
    throw new ServiceError('conflict', `this invitation is for ${email}: sign in with that address`);
  }
  const added = 'id' in who ? undefined : await newUser(email, who.name, who.password);
  const user = added ?? (who as User);
  await transaction(pool, async (client) => {
    if (!(await takeInvitation(client, invitation.id))) {
      throw new ServiceError('not_found', 'this invitation was used or taken back');
    }
    if (added) await addUser(client, added);
    await join(client, orgId, user.id, role);
  });
  return { userId: user.id, invitation };
}

/** @throws ServiceError not_found */
export async function requireMember(db: Db, orgId: string, userId: string): Promise<Member> {
  const member = await findMember(db, orgId, userId);
  if (!member) throw noMember();
  return member;
}

/** @throws ServiceError not_found, conflict when nobody would be left to decide */
export async function setRole(pool: Pool, orgId: string, userId: string, role: Role): Promise<void> {
  await transaction(pool, async (client) => {
    if (role !== 'owner') await keepAnOwner(client, orgId, userId);
    if (!(await setMemberRole(client, orgId, userId, role))) throw noMember();
  });
}

/** @throws ServiceError not_found, conflict when nobody would be left to decide */
export async function removeMember(pool: Pool, orgId: string, userId: string): Promise<void> {
  await transaction(pool, async (client) => {
    await keepAnOwner(client, orgId, userId);
    if (!(await deleteMembership(client, orgId, userId))) throw noMember();
  });
}

async function keepAnOwner(db: Db, orgId: string, userId: string): Promise<void> {
  const owners = await lockOwners(db, orgId);
  if (owners.length === 1 && owners[0] === userId) {
    throw new ServiceError('conflict', 'an organization needs an owner: make somebody else one first');
  }
}

function noMember(): ServiceError {
  return new ServiceError('not_found', 'the organization has no such member');
}
