import type { Db } from './pool.ts';

/** An email that its provider took and has told too little about. */
export interface UnreportedEmail {
  readonly id: string;
  /** The provider's ids: of the email, or of each copy of a marketing email. */
  readonly message_ids: readonly string[];
}

/**
 * Emails that Postmark, the one provider that can be asked, took more than 15 minutes ago and has not reported the end
 * of: those that nobody has asked about before, then those that it is time to ask about again. After three days nothing
 * more is asked: a provider gives up its own tries, and its callbacks to us, long before, and a weekend is covered.
 */
export async function findUnreported(db: Db, limit: number): Promise<UnreportedEmail[]> {
  const { rows } = await db.query<UnreportedEmail>({
    name: 'find_unreported',
    text: `WITH unreported AS (
             (SELECT id, provider_message_id FROM emails
              WHERE ${UNREPORTED} AND look_at IS NULL
                AND last_event_at <= now() - interval '15 minutes' AND last_event_at > now() - interval '72 hours'
              ORDER BY look_at, last_event_at LIMIT $1)
             UNION ALL
             (SELECT id, provider_message_id FROM emails WHERE ${UNREPORTED} AND look_at <= now()
              ORDER BY look_at, last_event_at LIMIT $1)
           )
           SELECT id, ARRAY(
             SELECT provider_message_id WHERE provider_message_id IS NOT NULL
             UNION
             SELECT copy.provider_message_id FROM email_recipients AS copy
             WHERE copy.email_id = unreported.id AND copy.provider_message_id IS NOT NULL
           ) AS message_ids
           FROM unreported LIMIT $1`,
    values: [limit],
  });
  return rows;
}

/** As the index emails_unreported says it. */
const UNREPORTED = `status IN ('sent', 'delivery_delayed') AND provider = 'postmark'`;

/** An email that should have left and has not. */
export interface OverdueEmail {
  readonly id: string;
  /** The workflow that carries it, or did. */
  readonly workflow_id: string;
}

/** Emails that have been due for more than ten minutes and that no outbox row speaks of, nor of their workflow. */
export async function findOverdue(db: Db, limit: number): Promise<OverdueEmail[]> {
  const { rows } = await db.query<OverdueEmail>({
    name: 'find_overdue',
    text: `SELECT queued.id, queued.workflow_id
           FROM organizations CROSS JOIN LATERAL (
             SELECT id, workflow_id FROM emails
             WHERE org_id = organizations.id AND status = 'queued' AND created_at <= now() - interval '10 minutes'
               AND (scheduled_at IS NULL OR scheduled_at <= now() - interval '10 minutes') AND ${UNSPOKEN_OF}
             ORDER BY created_at, id LIMIT $1
           ) AS queued
           UNION ALL
           (SELECT id, workflow_id FROM emails
            WHERE status = 'scheduled' AND scheduled_at <= now() - interval '10 minutes' AND ${UNSPOKEN_OF}
            ORDER BY scheduled_at LIMIT $1)
           LIMIT $1`,
    values: [limit],
  });
  return rows;
}

const UNSPOKEN_OF = `(look_at IS NULL OR look_at <= now())
  AND id NOT IN (SELECT message_id FROM outbox) AND workflow_id NOT IN (SELECT message_id FROM outbox)`;

/**
 * Notes that emails have been looked at: the next look comes when they have been stuck for twice as long, an hour later at
 * most, or a day for those that a provider took. These are left alone after three days.
 */
export async function noteLooks(db: Db, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await db.query({
    name: 'note_looks',
    text: `UPDATE emails AS email
           SET look_at = CASE WHEN stuck.taken AND now() + stuck.since > email.last_event_at + interval '72 hours'
                              THEN 'infinity' ELSE now() + least(stuck.since, stuck.most) END
           FROM (
             SELECT id, taken, CASE WHEN taken THEN interval '24 hours' ELSE interval '1 hour' END AS most,
                    now() - CASE WHEN taken THEN last_event_at ELSE coalesce(scheduled_at, created_at) END AS since
             FROM (SELECT *, status NOT IN ('queued', 'scheduled') AS taken FROM emails WHERE id = ANY ($1)) AS looked_at
           ) AS stuck
           WHERE email.id = stuck.id`,
    values: [ids],
  });
}
