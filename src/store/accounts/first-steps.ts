import { type Db, execute, queryOneRow } from '../postgres/pool.ts';

/** The completed first steps of an organization in the dashboard. */
export interface FirstSteps {
  readonly domain: boolean;
  readonly key: boolean;
  readonly email: boolean;
  readonly webhook: boolean;
  readonly teammate: boolean;
  /** True if a member has dismissed the checklist. */
  readonly dismissed: boolean;
}

/** Reads the first steps of an organization. An open invitation counts as a teammate. */
export async function readFirstSteps(db: Db, orgId: string): Promise<FirstSteps> {
  return queryOneRow(db, {
    name: 'read_first_steps',
    text: `SELECT EXISTS (SELECT FROM domains WHERE org_id = $1 AND status = 'verified') AS domain,
                  EXISTS (SELECT FROM api_keys WHERE org_id = $1 AND revoked_at IS NULL) AS key,
                  EXISTS (SELECT FROM emails WHERE org_id = $1) AS email,
                  EXISTS (SELECT FROM webhook_endpoints WHERE org_id = $1) AS webhook,
                  (SELECT count(*) > 1 FROM (SELECT FROM memberships WHERE org_id = $1 LIMIT 2) AS two)
                    OR EXISTS (SELECT FROM invitations WHERE org_id = $1 AND expires_at > now()) AS teammate,
                  checklist_dismissed_at IS NOT NULL AS dismissed
           FROM organizations WHERE id = $1`,
    values: [orgId],
  });
}

export async function dismissFirstSteps(db: Db, orgId: string): Promise<void> {
  await execute(
    db,
    `UPDATE organizations SET checklist_dismissed_at = coalesce(checklist_dismissed_at, now()) WHERE id = $1`,
    [orgId],
  );
}
