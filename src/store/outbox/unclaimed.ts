import { SUSPENDED_ORGANIZATIONS } from '../accounts/suspension.ts';
import { columns } from '../postgres/columns.ts';
import { type Db, queryColumn, queryRows } from '../postgres/pool.ts';
import type { GroupRow, MessageTable } from './outbox.ts';

/** A workflow that was started for messages that are due. */
export interface StartedWorkflow {
  readonly workflowId: string;
  /** All of its messages, or some of a group. */
  readonly messageIds: readonly string[];
  /** Milliseconds since its start. */
  readonly ageMs: number;
}

/** What the statements below need to know of a table. */
const TABLES = {
  emails: {
    workflow: 'workflow_id',
    channel: `'email'`,
    isUnclaimed: `status IN ('queued', 'scheduled') AND (look_at IS NULL OR look_at <= now())`,
  },
  // `look_at` is set when a message is accepted or rescheduled, and later when it has to wait.
  chat_messages: {
    workflow: 'coalesce(workflow_id, id)',
    channel: 'channel',
    isUnclaimed: `status IN ('queued', 'scheduled') AND look_at <= coalesce(scheduled_at, created_at) + interval '601 seconds'`,
  },
} as const satisfies Record<MessageTable, object>;

/**
 * Returns the workflows that have claimed one of these messages since they were started, or whose messages they do not deliver any more.
 * A claim leaves an attempt, a final status, or, if the message has to wait, the time of upkeep's next check.
 */
export function findClaimed(
  db: Db,
  started: readonly StartedWorkflow[],
  table: MessageTable = 'emails',
): Promise<string[]> {
  const messages = started.flatMap(({ messageIds, ...workflow }) => messageIds.map((id) => ({ ...workflow, id })));
  const { workflow, isUnclaimed } = TABLES[table];
  return queryColumn(db, {
    name: `find_claimed_of_${table}`,
    text: `SELECT DISTINCT started.workflow_id
           FROM unnest($1::text[], $2::text[], $3::float8[]) AS started(workflow_id, id, age_ms)
           WHERE EXISTS (SELECT FROM attempts
                         WHERE message_id = started.id AND started_at >= now() - age_ms * interval '1 millisecond' OFFSET 0)
              OR NOT EXISTS (SELECT FROM ${table}
                             WHERE id = started.id AND ${workflow} = started.workflow_id AND ${isUnclaimed} OFFSET 0)`,
    values: columns(messages, 'workflowId', 'id', 'ageMs'),
  });
}

/**
 * Returns messages whose own workflows have not claimed them: of certain ones, and of those that were scheduled for a time at least
 * three seconds ago. Of these it reads the latest.
 */
export function findUnclaimed(
  db: Db,
  ids: readonly string[],
  limit: number,
  table: MessageTable = 'emails',
): Promise<{ readonly id: string; readonly version: number; readonly channel: GroupRow['channel'] }[]> {
  const { workflow, channel, isUnclaimed } = TABLES[table];
  return queryRows(db, {
    name: `find_unclaimed_of_${table}`,
    text: `SELECT id, schedule_version AS version, channel
           FROM (
             SELECT unnest($1::text[]) AS id
             UNION
             (SELECT id FROM ${table} WHERE status = 'scheduled' AND scheduled_at <= now() - interval '3 seconds'
              ORDER BY scheduled_at DESC LIMIT $2)
           ) AS candidate CROSS JOIN LATERAL (
             SELECT schedule_version, ${channel} AS channel FROM ${table}
             WHERE id = candidate.id AND ${workflow} = candidate.id AND ${isUnclaimed}
               AND org_id <> ALL (${SUSPENDED_ORGANIZATIONS})
               AND NOT EXISTS (SELECT FROM attempts WHERE message_id = candidate.id OFFSET 0)
             OFFSET 0
           ) AS message
           LIMIT $2`,
    values: [ids, limit],
  });
}
