import { type Db, queryOneRow, queryRows, queryValue } from '../postgres/pool.ts';

/** Counts of the backlog stop at this number, which bounds their cost; a page then shows "more than". */
export const MAX_COUNTED = 10_000;

/** The backlog of an organization. A count of MAX_COUNTED + 1 means more than MAX_COUNTED. */
export interface Backlog {
  queued: number;
  /** When the oldest of the first thousand that are queued was due. */
  oldest_due_at: string | null;
  /** Emails that are due within an hour. */
  due_soon: number;
  /** Pending webhook deliveries of enabled endpoints. */
  webhooks: number;
  /** True while single messages share workflows because the installation's workers do not keep up. */
  is_behind: boolean;
}

export async function readBacklog(db: Db, orgId: string): Promise<Backlog> {
  return queryOneRow(db, {
    name: 'read_backlog',
    text: `SELECT
             (SELECT count(*)::int FROM (
                SELECT FROM emails WHERE org_id = $1 AND status = 'queued' ORDER BY created_at, id LIMIT $2
              ) AS waiting) AS queued,
             (SELECT min(due_at) FROM (
                SELECT coalesce(scheduled_at, created_at) AS due_at FROM emails
                WHERE org_id = $1 AND status = 'queued' ORDER BY created_at, id LIMIT 1000
              ) AS oldest) AS oldest_due_at,
             (SELECT count(*)::int FROM (
                SELECT FROM emails WHERE org_id = $1 AND status = 'scheduled' AND scheduled_at < now() + interval '1 hour'
                ORDER BY scheduled_at LIMIT $2
              ) AS soon) AS due_soon,
             (SELECT coalesce(sum(pending), 0)::int FROM webhook_endpoints AS endpoint CROSS JOIN LATERAL (
                SELECT count(*) AS pending FROM (
                  SELECT FROM webhook_deliveries WHERE endpoint_id = endpoint.id AND status = 'pending'
                  ORDER BY next_attempt_at LIMIT $2
                ) AS due
              ) AS counted WHERE endpoint.org_id = $1 AND endpoint.status = 'enabled') AS webhooks,
             EXISTS (SELECT FROM relay_lease WHERE is_behind) AS is_behind`,
    values: [orgId, MAX_COUNTED + 1],
  });
}

/** An endpoint that is disabled or failing, or a failed domain. */
export interface Issue {
  readonly kind: 'endpoint' | 'domain';
  readonly id: string;
  readonly name: string;
  /** Why the endpoint was disabled. */
  readonly reason: string | null;
  /** Since when each delivery to an endpoint has failed, of one that is enabled. */
  readonly failing_since: string | null;
}

/** At most 20 of each kind. */
export function listIssues(db: Db, orgId: string): Promise<Issue[]> {
  return queryRows(db, {
    name: 'list_issues',
    text: `(SELECT 'endpoint' AS kind, id, coalesce(description, url) AS name, disabled_reason AS reason,
                   CASE status WHEN 'enabled' THEN failing_since END AS failing_since
            FROM webhook_endpoints
            WHERE org_id = $1 AND (status = 'disabled' OR failing_since IS NOT NULL) ORDER BY created_at, id LIMIT 20)
           UNION ALL
           (SELECT 'domain', id, name, NULL, NULL FROM domains WHERE org_id = $1 AND status = 'failed' ORDER BY name LIMIT 20)`,
    values: [orgId],
  });
}

/** The name of a domain that an organization may send from, if it has one. */
export function findVerifiedDomain(db: Db, orgId: string): Promise<string | undefined> {
  return queryValue(db, {
    name: 'find_verified_domain',
    text: `SELECT name FROM domains WHERE org_id = $1 AND status = 'verified' ORDER BY name LIMIT 1`,
    values: [orgId],
  });
}
