import { type Cursor, cursorValues } from '../postgres/page.ts';
import { type Db, execute, executeOne, queryColumn, queryRow, queryRows, queryValue } from '../postgres/pool.ts';

/**
 * Viewers read. Members also change messages and suppressions, and test and replay webhooks. Owners also manage keys, domains,
 * numbers, endpoints, members and settings.
 */
export const ROLES = ['viewer', 'member', 'owner'] as const;
export type Role = (typeof ROLES)[number];

export interface User {
  id: string;
  /** A bare address in lower case. */
  email: string;
  /** May be empty. */
  name: string;
}

export type UserWithPassword = User & {
  /** Its hash, with salt and cost. */
  password: string;
  /** When the holder of the address was confirmed, by the operator or by an emailed link; null while it is not. */
  proved_at: string | null;
};

const COLUMNS = 'id, email, name, password, proved_at';

/** @throws SQLSTATE 23505 when there is a user of this address */
export async function insertUser(
  db: Db,
  user: Readonly<Omit<UserWithPassword, 'proved_at'>>,
  isEmailVerified: boolean,
): Promise<void> {
  await execute(
    db,
    `INSERT INTO users (id, email, name, password, proved_at) VALUES ($1, $2, $3, $4, CASE WHEN $5 THEN now() END)`,
    [user.id, user.email, user.name, user.password, isEmailVerified],
  );
}

export function findUserByEmail(db: Db, email: string): Promise<UserWithPassword | undefined> {
  return queryRow(db, `SELECT ${COLUMNS} FROM users WHERE email = $1`, [email]);
}

export function findUser(db: Db, id: string): Promise<UserWithPassword | undefined> {
  return queryRow(db, `SELECT ${COLUMNS} FROM users WHERE id = $1`, [id]);
}

export async function markEmailVerified(db: Db, id: string): Promise<void> {
  await execute(db, `UPDATE users SET proved_at = coalesce(proved_at, now()) WHERE id = $1`, [id]);
}

/** Deletes a user who is a member of nothing and has no session. */
export async function deleteUser(db: Db, id: string): Promise<void> {
  await execute(db, `DELETE FROM users WHERE id = $1`, [id]);
}

export type ListedUser = User & {
  proved_at: string | null;
  created_at: string;
  organizations: { id: string; role: Role }[];
};

/** Users by the time of their creation. @param orgId when not null, only members of this organization */
export function listUsers(db: Db, orgId: string | null): Promise<ListedUser[]> {
  return queryRows(
    db,
    `SELECT id, email, name, proved_at, created_at,
       (SELECT coalesce(json_agg(json_build_object('id', org_id, 'role', role) ORDER BY org_id), '[]')
        FROM memberships WHERE user_id = users.id) AS organizations
     FROM users
     WHERE $1::text IS NULL OR EXISTS (SELECT FROM memberships WHERE org_id = $1 AND user_id = users.id)
     ORDER BY created_at, id`,
    [orgId],
  );
}

/**
 * Sets a password and ends the links to reset the previous one.
 * @param password the hash
 */
export async function setPassword(db: Db, id: string, password: string): Promise<void> {
  await execute(
    db,
    `WITH ended AS (DELETE FROM password_resets WHERE user_id = $1) UPDATE users SET password = $2 WHERE id = $1`,
    [id, password],
  );
}

/** Returns the hash of a user's password, which does not change until the transaction ends. */
export function lockPassword(db: Db, id: string): Promise<string | undefined> {
  return queryValue(db, `SELECT password FROM users WHERE id = $1 FOR NO KEY UPDATE`, [id]);
}

export async function setUserName(db: Db, id: string, name: string): Promise<void> {
  await execute(db, `UPDATE users SET name = $2 WHERE id = $1`, [id, name]);
}

/** @param timeZone its name in the IANA database; null is that of the browser */
export async function setUserTimeZone(db: Db, id: string, timeZone: string | null): Promise<void> {
  await execute(db, `UPDATE users SET time_zone = $2 WHERE id = $1`, [id, timeZone]);
}

/** Makes a user a member. @returns false if the user is one already; the role then stays */
export function insertMembership(db: Db, orgId: string, userId: string, role: Role): Promise<boolean> {
  return executeOne(db, `INSERT INTO memberships (org_id, user_id, role) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, [
    orgId,
    userId,
    role,
  ]);
}

export type Member = User & {
  role: Role;
  created_at: string;
};

/** Members of an organization, newest first. */
export function listMembers(db: Db, orgId: string, after: Cursor | null, limit: number): Promise<Member[]> {
  return queryRows(
    db,
    `SELECT users.id, email, name, role, membership.created_at
     FROM memberships AS membership JOIN users ON users.id = user_id
     WHERE org_id = $1 AND (membership.created_at, user_id) < ($2::timestamptz, $3)
     ORDER BY membership.created_at DESC, user_id DESC LIMIT $4`,
    [orgId, ...cursorValues(after), limit],
  );
}

export function findMember(db: Db, orgId: string, userId: string): Promise<Member | undefined> {
  return queryRow(
    db,
    `SELECT users.id, email, name, role, membership.created_at
     FROM memberships AS membership JOIN users ON users.id = user_id WHERE org_id = $1 AND user_id = $2`,
    [orgId, userId],
  );
}

export function lockOwners(db: Db, orgId: string): Promise<string[]> {
  return queryColumn(
    db,
    `SELECT user_id FROM memberships WHERE org_id = $1 AND role = 'owner' ORDER BY user_id FOR UPDATE`,
    [orgId],
  );
}

/** The addresses of an organization's owners, at most 20, and its name. */
export function listOwners(db: Db, orgId: string): Promise<{ email: string; organization: string }[]> {
  return queryRows(
    db,
    `SELECT users.email, organization.name AS organization
     FROM memberships JOIN users ON users.id = user_id JOIN organizations AS organization ON organization.id = org_id
     WHERE org_id = $1 AND role = 'owner' ORDER BY users.id LIMIT 20`,
    [orgId],
  );
}

/** The names of an organization, if any, and of the organizations of a user. */
export function findOrganizationNames(db: Db, email: string, orgId: string | null): Promise<string[]> {
  return queryColumn(
    db,
    `SELECT name FROM organizations WHERE id = $2 OR id IN (
       SELECT org_id FROM memberships JOIN users ON users.id = user_id WHERE users.email = $1)`,
    [email, orgId],
  );
}

/** Returns true if an organization has a member besides its first one: somebody who was invited, or whom the operator added. */
export async function hasSeveralMembers(db: Db, orgId: string): Promise<boolean> {
  return (await execute(db, `SELECT FROM memberships WHERE org_id = $1 LIMIT 2`, [orgId])) > 1;
}

export function setMemberRole(db: Db, orgId: string, userId: string, role: Role): Promise<boolean> {
  return executeOne(db, `UPDATE memberships SET role = $3 WHERE org_id = $1 AND user_id = $2`, [orgId, userId, role]);
}

export function deleteMembership(db: Db, orgId: string, userId: string): Promise<boolean> {
  return executeOne(db, `DELETE FROM memberships WHERE org_id = $1 AND user_id = $2`, [orgId, userId]);
}

export function lockMemberships(db: Db, userId: string): Promise<{ org_id: string; role: Role }[]> {
  return queryRows(db, `SELECT org_id, role FROM memberships WHERE user_id = $1 ORDER BY org_id FOR UPDATE`, [userId]);
}
