import { wireTime } from '../emails/emails.ts';
import { type Db, execute, executeOne, queryRow, queryRows } from '../postgres/pool.ts';
import type { Role, User } from './users.ts';

/** A session ends 7 days after it was last used, and 30 days after it began in any case. */
const END = `least(created_at + interval '30 days', now() + interval '7 days')`;

export interface OrganizationOfUser {
  id: string;
  name: string;
  role: Role;
  /** When the operator suspended it; null while it is active. */
  suspended_at: string | null;
  suspended_reason: string | null;
  /** True if its members must have a second factor to open its pages. */
  requires_second_factor: boolean;
  /** True if its pages open only in sessions that began by OpenID Connect. */
  requires_oidc: boolean;
}

interface Session {
  user: User;
  /** The time zone of the user; null is that of the browser. */
  time_zone: string | null;
  /** All of the user's organizations, by name. */
  organizations: OrganizationOfUser[];
  /** The selected one; the user may have left it since. */
  org_id: string | null;
  flash: string | null;
  /** True if it began by a sign-in by OpenID Connect. */
  by_oidc: boolean;
  /** False if that sign-in is too old for an organization that requires it. */
  is_oidc_fresh: boolean;
  /** True if the user has set up a second factor. */
  has_second_factor: boolean;
  /** True if its last use must be recorded. */
  is_stale: boolean;
}

/** After that time, the identity provider confirms again that a person still belongs to an organization that requires it. */
const OIDC_FRESH_FOR = '12 hours';

/** The client that uses a session. */
export interface SessionClient {
  /** The IP address of the client. */
  readonly address: string;
  readonly userAgent: string | undefined;
  /** True if it begins by a sign-in by OpenID Connect; false by default. */
  readonly byOidc?: boolean;
}

/** Longest User-Agent that is stored. */
const MAX_USER_AGENT_LENGTH = 300;

/** Begins a session in the first of the user's organizations. @param sha256 of its token */
export async function insertSession(
  db: Db,
  sha256: Buffer,
  userId: string,
  { address, userAgent, byOidc = false }: SessionClient,
): Promise<void> {
  await execute(
    db,
    `INSERT INTO sessions (sha256, user_id, org_id, expires_at, address, user_agent, by_oidc)
     VALUES ($1, $2, (SELECT org_id FROM memberships WHERE user_id = $2 ORDER BY org_id LIMIT 1),
             now() + interval '7 days', $3, $4, $5)`,
    [sha256, userId, address, userAgent?.slice(0, MAX_USER_AGENT_LENGTH) ?? null, byOidc],
  );
}

/** The id of a session in pages and forms: a digest of the digest of its token, so that it opens nothing. */
const ID = `encode(sha256(sessions.sha256), 'hex')`;

export interface ListedSession {
  id: string;
  created_at: string;
  /** To a few minutes. */
  last_seen_at: string;
  address: string | null;
  user_agent: string | null;
  by_oidc: boolean;
  is_current: boolean;
}

/** Open sessions of a user, the current one first, then by their last use; at most 100. */
export function listSessions(db: Db, userId: string, current: Buffer): Promise<ListedSession[]> {
  return queryRows(
    db,
    `SELECT ${ID} AS id, created_at, last_seen_at, address, user_agent, by_oidc, sha256 = $2 AS is_current
     FROM sessions WHERE user_id = $1 AND expires_at > now()
     ORDER BY sha256 = $2 DESC, last_seen_at DESC, sha256 LIMIT 100`,
    [userId, current],
  );
}

/** Ends one session of a user. @returns false if the user has no such session */
export function deleteSessionById(db: Db, userId: string, id: string): Promise<boolean> {
  return executeOne(db, `DELETE FROM sessions WHERE user_id = $1 AND ${ID} = $2`, [userId, id]);
}

/** Finds the session of a token. @returns undefined if there is none or it is over */
export function findSession(db: Db, sha256: Buffer): Promise<Session | undefined> {
  return queryRow(db, {
    name: 'find_session',
    text: `SELECT json_build_object('id', users.id, 'email', users.email, 'name', users.name) AS "user",
             users.time_zone,
             session.org_id, session.flash, session.by_oidc, session.created_at > now() - interval '${OIDC_FRESH_FOR}' AS is_oidc_fresh,
             session.last_seen_at < now() - interval '5 minutes' AS is_stale,
             EXISTS (SELECT FROM second_factors AS factor
                     WHERE factor.user_id = session.user_id AND confirmed_at IS NOT NULL) AS has_second_factor,
             (SELECT coalesce(json_agg(json_build_object('id', organization.id, 'name', organization.name, 'role', role,
                                                         'suspended_at', ${wireTime('organization.suspended_at')},
                                                         'suspended_reason', organization.suspended_reason,
                                                         'requires_second_factor', requires_second_factor,
                                                         'requires_oidc', requires_oidc)
                                       ORDER BY organization.name, organization.id), '[]')
              FROM memberships JOIN organizations AS organization ON organization.id = org_id
              WHERE user_id = session.user_id) AS organizations
           FROM sessions AS session JOIN users ON users.id = session.user_id
           WHERE session.sha256 = $1 AND session.expires_at > now()`,
    values: [sha256],
  });
}

export async function touchSession(db: Db, sha256: Buffer, address: string): Promise<void> {
  await execute(db, `UPDATE sessions SET last_seen_at = now(), expires_at = ${END}, address = $2 WHERE sha256 = $1`, [
    sha256,
    address,
  ]);
}

/** Selects another organization. @returns false if the user is not its member */
export function setSessionOrganization(db: Db, sha256: Buffer, orgId: string): Promise<boolean> {
  return executeOne(
    db,
    `UPDATE sessions SET org_id = $2
     WHERE sha256 = $1 AND EXISTS (SELECT FROM memberships WHERE org_id = $2 AND user_id = sessions.user_id)`,
    [sha256, orgId],
  );
}

/** Sets the message that the next page shows. @param flash null after a page has shown it */
export async function setFlash(db: Db, sha256: Buffer, flash: string | null): Promise<void> {
  await execute(db, `UPDATE sessions SET flash = $2 WHERE sha256 = $1`, [sha256, flash]);
}

export async function deleteSession(db: Db, sha256: Buffer): Promise<void> {
  await execute(db, `DELETE FROM sessions WHERE sha256 = $1`, [sha256]);
}

/** Ends all sessions of a user but one. @param keep the one that stays, or null for none @returns how many ended */
export function deleteOtherSessions(db: Db, userId: string, keep: Buffer | null): Promise<number> {
  return execute(db, `DELETE FROM sessions WHERE user_id = $1 AND sha256 IS DISTINCT FROM $2`, [userId, keep]);
}
