import { SUSPENDED_ORGANIZATIONS } from '../accounts/suspension.ts';
import { columns } from '../postgres/columns.ts';
import { type Db, queryColumn, queryRows } from '../postgres/pool.ts';

/** A workflow that was started for emails that are due. */
export interface StartedWorkflow {
  readonly workflowId: string;
  /** All of its emails, or some of a group. */
  readonly emailIds: readonly string[];
  /** Milliseconds since its start. */
  readonly ageMs: number;
}

/**
 * Returns the workflows that have claimed one of these emails since they were started, or whose emails they do not deliver any more. A
 * claim leaves an attempt, a final status, or, if the email has to wait, the time of upkeep's next check.
 */
export function findClaimed(db: Db, started: readonly StartedWorkflow[]): Promise<string[]> {
  const emails = started.flatMap(({ emailIds, ...workflow }) => emailIds.map((id) => ({ ...workflow, id })));
  return queryColumn(db, {
    name: 'find_claimed',
    text: `SELECT DISTINCT started.workflow_id
           FROM unnest($1::text[], $2::text[], $3::float8[]) AS started(workflow_id, id, age_ms)
           WHERE EXISTS (SELECT FROM attempts
                         WHERE message_id = started.id AND started_at >= now() - age_ms * interval '1 millisecond' OFFSET 0)
              OR NOT EXISTS (SELECT FROM emails
                             WHERE id = started.id AND workflow_id = started.workflow_id AND ${IS_UNCLAIMED} OFFSET 0)`,
    values: columns(emails, 'workflowId', 'id', 'ageMs'),
  });
}

const IS_UNCLAIMED = `status IN ('queued', 'scheduled') AND (look_at IS NULL OR look_at <= now())`;

/**
 * Returns emails whose own workflows have not claimed them: of certain ones, and of those that were scheduled for a time at least three
 * seconds ago. Of these it reads the latest.
 */
export function findUnclaimed(
  db: Db,
  ids: readonly string[],
  limit: number,
): Promise<{ readonly id: string; readonly version: number }[]> {
  return queryRows(db, {
    name: 'find_unclaimed',
    text: `SELECT id, schedule_version AS version
           FROM (
             SELECT unnest($1::text[]) AS id
             UNION
             (SELECT id FROM emails WHERE status = 'scheduled' AND scheduled_at <= now() - interval '3 seconds'
              ORDER BY scheduled_at DESC LIMIT $2)
           ) AS candidate CROSS JOIN LATERAL (
             SELECT schedule_version, scheduled_at FROM emails
             WHERE id = candidate.id AND workflow_id = candidate.id AND ${IS_UNCLAIMED}
               AND org_id <> ALL (${SUSPENDED_ORGANIZATIONS})
               AND NOT EXISTS (SELECT FROM attempts WHERE message_id = candidate.id OFFSET 0)
             OFFSET 0
           ) AS email
           LIMIT $2`,
    values: [ids, limit],
  });
}
