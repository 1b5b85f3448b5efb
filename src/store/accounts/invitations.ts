import { type Db, execute, executeOne, queryRow, queryRows, queryValue } from '../postgres/pool.ts';
import type { Role } from './users.ts';

export interface Invitation {
  id: string;
  org_id: string;
  /** The name of that organization. */
  organization: string;
  email: string;
  role: Role;
  /** True if only the email contains its link. */
  emailed: boolean;
  /** True if the organization requires sign-in by OpenID Connect. */
  requires_oidc: boolean;
  created_at: string;
  expires_at: string;
}

const COLUMNS = `invitation.id, org_id, organization.name AS organization, invitation.email, role, emailed, requires_oidc,
  invitation.created_at, expires_at`;

/** Invites an address for 7 days; an earlier invitation of it ends. @returns when the invitation expires */
export async function insertInvitation(
  db: Db,
  invitation: Readonly<Pick<Invitation, 'id' | 'org_id' | 'email' | 'role'>>,
  sha256: Buffer,
): Promise<string> {
  const expiresAt = await queryValue<string>(
    db,
    `INSERT INTO invitations (id, org_id, email, role, sha256, expires_at)
     VALUES ($1, $2, $3, $4, $5, now() + interval '7 days')
     ON CONFLICT (org_id, email) DO UPDATE SET
       id = excluded.id, role = excluded.role, sha256 = excluded.sha256, created_at = now(),
       expires_at = excluded.expires_at, emailed = false
     RETURNING expires_at`,
    [invitation.id, invitation.org_id, invitation.email, invitation.role, sha256],
  );
  return expiresAt as string;
}

/** Records that an invitation was sent by email. */
export async function markEmailed(db: Db, orgId: string, id: string): Promise<void> {
  await execute(db, `UPDATE invitations SET emailed = true WHERE id = $1 AND org_id = $2`, [id, orgId]);
}

/** Open invitations of an organization, by address; at most 1,000. */
export function listInvitations(db: Db, orgId: string): Promise<Invitation[]> {
  return queryRows(
    db,
    `SELECT ${COLUMNS} FROM invitations AS invitation JOIN organizations AS organization ON organization.id = org_id
     WHERE org_id = $1 AND expires_at > now() ORDER BY email LIMIT 1000`,
    [orgId],
  );
}

export function findInvitation(db: Db, sha256: Buffer): Promise<Invitation | undefined> {
  return queryRow(
    db,
    `SELECT ${COLUMNS} FROM invitations AS invitation JOIN organizations AS organization ON organization.id = org_id
     WHERE sha256 = $1 AND expires_at > now()`,
    [sha256],
  );
}

/**
 * Open invitations of a user's address, oldest first. A user whose address was never confirmed has none here: the account
 * may belong to a person other than the invited one.
 */
export function listInvitationsOf(db: Db, userId: string): Promise<Invitation[]> {
  return queryRows(
    db,
    `SELECT ${COLUMNS} FROM users
     JOIN invitations AS invitation ON invitation.email = users.email AND expires_at > now()
     JOIN organizations AS organization ON organization.id = org_id
     WHERE users.id = $1 AND users.proved_at IS NOT NULL ORDER BY invitation.created_at, invitation.id LIMIT 100`,
    [userId],
  );
}

/** Returns true if an address has an open invitation. */
export function hasInvitation(db: Db, email: string): Promise<boolean> {
  return executeOne(db, `SELECT FROM invitations WHERE email = $1 AND expires_at > now() LIMIT 1`, [email]);
}

/** Redeems an invitation. @returns false if it was redeemed or has expired */
export function redeemInvitation(db: Db, id: string): Promise<boolean> {
  return executeOne(db, `DELETE FROM invitations WHERE id = $1 AND expires_at > now()`, [id]);
}

/** Deletes the invitation of an address to an organization, open or expired. */
export async function deleteInvitationsTo(db: Db, orgId: string, email: string): Promise<void> {
  await execute(db, `DELETE FROM invitations WHERE org_id = $1 AND email = $2`, [orgId, email]);
}

export function deleteInvitation(db: Db, orgId: string, id: string): Promise<boolean> {
  return executeOne(db, `DELETE FROM invitations WHERE id = $1 AND org_id = $2`, [id, orgId]);
}
