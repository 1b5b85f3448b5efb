import { lockRows } from './attempts.ts';
import { IS_OPEN } from './recipients.ts';
import { type Db, execute, executeOne, queryColumn, queryRow, queryRows } from '../postgres/pool.ts';

/** The result of an erasure for one message. */
export interface ContentErasure {
  readonly id: string;
  /** True if the message must still be sent, at least to some recipients; its content was then kept. */
  readonly is_open: boolean;
}

/**
 * Erases bodies and custom headers of emails that have ended; the caller deletes files. Locks the rows of the emails, so call it
 * in a transaction. Idempotent.
 * @returns a result for each email that the organization has
 */
export async function eraseContents(db: Db, orgId: string, ids: readonly string[]): Promise<ContentErasure[]> {
  await lockRows(db, ids, orgId);
  const rows = await queryRows<ContentErasure>(db, {
    name: 'find_open_contents',
    text: `SELECT id, ${IS_OPEN('email')} AS is_open
           FROM emails AS email WHERE id = ANY ($1) AND org_id = $2 ORDER BY id`,
    values: [ids, orgId],
  });
  const ended = rows.filter(({ is_open: isOpen }) => !isOpen).map(({ id }) => id);
  if (ended.length > 0) {
    await execute(db, `DELETE FROM email_bodies WHERE email_id = ANY ($1)`, [ended]);
    await execute(
      db,
      `UPDATE emails SET headers = '{}', sealed_headers = NULL
       WHERE id = ANY ($1) AND (sealed_headers IS NOT NULL OR headers::text <> '{}')`,
      [ended],
    );
  }
  return rows;
}

/** An organization whose content expires, and the position of upkeep in it. */
export interface ExpiringOrganization {
  readonly id: string;
  readonly days: number;
  readonly expired_at: string;
  readonly expired_id: string;
  readonly messages_expired_at: string;
  readonly messages_expired_id: string;
}

/**
 * Returns the next organization whose content expires, in the order of ids.
 * @param defaultDays the retention of organizations without their own; 0 is forever
 */
export function nextExpiringOrganization(
  db: Db,
  after: string,
  defaultDays: number,
): Promise<ExpiringOrganization | undefined> {
  return queryRow(
    db,
    `SELECT id, coalesce(body_retention_days, $2) AS days,
            coalesce(bodies_expired_at::text, '-infinity') AS expired_at, coalesce(bodies_expired_id, '') AS expired_id,
            coalesce(messages_expired_at::text, '-infinity') AS messages_expired_at,
            coalesce(messages_expired_id, '') AS messages_expired_id
     FROM organizations WHERE id > $1 AND coalesce(body_retention_days, $2) > 0 ORDER BY id LIMIT 1`,
    [after, defaultDays],
  );
}

export interface ExpiringEmail {
  readonly id: string;
  /** The time in Postgres's notation. */
  readonly created_at: string;
  /** True if the retention has passed since the email was due. */
  readonly is_expired: boolean;
}

/** Lists emails of an organization whose retention may have ended, oldest first, after the position of upkeep. */
export function listExpiring(
  db: Db,
  { id, days, expired_at, expired_id }: ExpiringOrganization,
  limit: number,
): Promise<ExpiringEmail[]> {
  return queryRows(db, {
    name: 'list_expiring',
    // Without its table's name, created_at would be the text: all emails would be read and sorted.
    text: `SELECT id, created_at::text AS created_at,
                  coalesce(scheduled_at, created_at) < now() - make_interval(days => $4) AS is_expired
           FROM emails WHERE org_id = $1 AND (created_at, id) > ($2::timestamptz, $3)
             AND created_at < now() - make_interval(days => $4)
           ORDER BY emails.created_at, id LIMIT $5`,
    values: [id, expired_at, expired_id, days, limit],
  });
}

/** Stores the position of upkeep in an organization. */
export async function recordExpired(
  db: Db,
  orgId: string,
  last: Pick<ExpiringEmail, 'id' | 'created_at'>,
): Promise<void> {
  await execute(db, `UPDATE organizations SET bodies_expired_at = $2, bodies_expired_id = $3 WHERE id = $1`, [
    orgId,
    last.created_at,
    last.id,
  ]);
}

/** Schedules messages whose content cannot be erased yet for another check in a day. */
export async function holdBodies(db: Db, orgId: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await execute(
    db,
    `INSERT INTO held_bodies (email_id, org_id, look_at) SELECT id, $1, now() + interval '1 day' FROM unnest($2::text[]) AS id
     ON CONFLICT (email_id) DO UPDATE SET look_at = excluded.look_at`,
    [orgId, ids],
  );
}

/**
 * Removes held messages that are due for another check from their list, except while their organization keeps content forever.
 * @returns them, with their organizations; a message without a row has expired
 */
export function takeHeldBodies(
  db: Db,
  defaultDays: number,
  limit: number,
): Promise<{ id: string; org_id: string; is_expired: boolean }[]> {
  return queryRows(
    db,
    `WITH taken AS (
       DELETE FROM held_bodies WHERE email_id IN (
         SELECT held.email_id FROM held_bodies AS held JOIN organizations AS org ON org.id = held.org_id
         WHERE held.look_at <= now() AND coalesce(org.body_retention_days, $1) > 0
         ORDER BY held.look_at LIMIT $2 FOR UPDATE OF held SKIP LOCKED
       ) RETURNING email_id, org_id
     )
     SELECT taken.email_id AS id, taken.org_id,
            coalesce(coalesce(email.scheduled_at, email.created_at, message.scheduled_at, message.created_at)
                       < now() - make_interval(days => coalesce(org.body_retention_days, $1)), true) AS is_expired
     FROM taken LEFT JOIN emails AS email ON email.id = taken.email_id
                LEFT JOIN chat_messages AS message ON message.id = taken.email_id JOIN organizations AS org ON org.id = taken.org_id`,
    [defaultDays, limit],
  );
}

/**
 * Sets the retention of the content of an organization's emails.
 * @param days 0 is forever, null is the setting
 * @returns false if there is no such organization
 */
export function setBodyRetention(db: Db, orgId: string, days: number | null): Promise<boolean> {
  return executeOne(db, `UPDATE organizations SET body_retention_days = $2 WHERE id = $1`, [orgId, days]);
}

/** Lists ids of the emails' files that have not been deleted. OFFSET 0 prevents a plan that reads all such files. */
export function findFileIds(db: Db, emailIds: readonly string[]): Promise<string[]> {
  return queryColumn(db, {
    name: 'find_file_ids',
    text: `SELECT id FROM (SELECT id, deleted_at FROM attachments WHERE email_id = ANY ($1) OFFSET 0) AS file
           WHERE deleted_at IS NULL`,
    values: [emailIds],
  });
}
