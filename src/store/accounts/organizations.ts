import { type Db, execute, executeOne, queryRow, queryRows } from '../postgres/pool.ts';

export interface Organization {
  id: string;
  name: string;
  created_at: string;
  /** When the operator suspended it; null while it is active. */
  suspended_at: string | null;
}

export async function insertOrganization(db: Db, id: string, name: string): Promise<void> {
  await execute(db, `INSERT INTO organizations (id, name) VALUES ($1, $2)`, [id, name]);
}

export function listOrganizations(db: Db): Promise<Organization[]> {
  return queryRows(db, `SELECT id, name, created_at, suspended_at FROM organizations ORDER BY id`);
}

export function organizationExists(db: Db, id: string): Promise<boolean> {
  return executeOne(db, `SELECT FROM organizations WHERE id = $1`, [id]);
}

/** The settings of an organization that its members see. */
interface OrganizationSettings {
  created_at: string;
  /** Emails that may be accepted in a calendar month (UTC); null is any number. */
  monthly_quota: number | null;
  /** Days after which bodies of emails are erased; 0 is never, null is the setting BODY_RETENTION_DAYS. */
  body_retention_days: number | null;
}

export function readOrganizationSettings(db: Db, id: string): Promise<OrganizationSettings | undefined> {
  return queryRow(
    db,
    `SELECT created_at, monthly_quota::float8 AS monthly_quota, body_retention_days FROM organizations WHERE id = $1`,
    [id],
  );
}

/** Renames an organization; false if there is none. */
export function setOrganizationName(db: Db, id: string, name: string): Promise<boolean> {
  return executeOne(db, `UPDATE organizations SET name = $2 WHERE id = $1`, [id, name]);
}

/** What members must do to open the organization's pages. */
export interface SignInRequirements {
  readonly requires_second_factor: boolean;
  /** True if they must sign in by OpenID Connect. */
  readonly requires_oidc: boolean;
}

export async function setSignInRequirements(db: Db, orgId: string, required: SignInRequirements): Promise<void> {
  await execute(db, `UPDATE organizations SET requires_second_factor = $2, requires_oidc = $3 WHERE id = $1`, [
    orgId,
    required.requires_second_factor,
    required.requires_oidc,
  ]);
}

/** Lets members sign in by password again. @returns false if there is no such organization */
export function clearOidcRequirement(db: Db, orgId: string): Promise<boolean> {
  return executeOne(db, `UPDATE organizations SET requires_oidc = false WHERE id = $1`, [orgId]);
}

/** Returns true for a member of an organization that requires sign-in by OpenID Connect. */
export function hasOidcOrganization(db: Db, userId: string): Promise<boolean> {
  return executeOne(
    db,
    `SELECT FROM memberships JOIN organizations AS organization ON organization.id = org_id
     WHERE user_id = $1 AND requires_oidc LIMIT 1`,
    [userId],
  );
}

/** Returns true for a member of organizations that all require sign-in by OpenID Connect. */
export function needsOidc(db: Db, userId: string): Promise<boolean> {
  return executeOne(
    db,
    `SELECT FROM memberships JOIN organizations AS organization ON organization.id = org_id
     WHERE user_id = $1 HAVING bool_and(requires_oidc)`,
    [userId],
  );
}
