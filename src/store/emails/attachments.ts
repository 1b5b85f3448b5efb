import type { Attachment } from '../../domain/email/attachments.ts';
import { SUBTRACT_STORED_BYTES } from '../files/reservations.ts';
import { IS_OPEN } from './recipients.ts';
import { type Db, execute, queryColumn, queryOneValue, queryRow, queryRows } from '../postgres/pool.ts';
import { columns } from '../postgres/columns.ts';
import { readClock } from '../postgres/clock.ts';

/**
 * Stores the files of an email, in the transaction that stores the email. Their contents were reserved (`reserveFiles`) and
 * written before.
 * @throws if upkeep has begun to remove one of them; then the transaction must not commit
 */
export async function insertAttachments(
  db: Db,
  orgId: string,
  emailId: string,
  files: readonly Attachment[],
): Promise<void> {
  const used = await queryOneValue<number>(db, {
    name: 'insert_attachments',
    text: `WITH used AS (
             DELETE FROM file_reservations WHERE id = ANY ($3) AND abandoned_at IS NULL RETURNING id
           ), inserted AS (
             INSERT INTO attachments (id, org_id, email_id, position, filename, content_type, size, content_id, look_at)
             SELECT id, $1, $2, position, filename, content_type, size, content_id, now() + interval '720 hours'
             FROM unnest($3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[]) WITH ORDINALITY
                  AS file(id, filename, content_type, size, content_id, position)
           )
           SELECT count(*)::int AS used FROM used`,
    values: [orgId, emailId, ...columns(files, 'id', 'filename', 'content_type', 'size', 'content_id')],
  });
  if (used !== files.length) throw new Error('a file of this email is being removed');
}

/** Returns SQL of an email's files as JSON, with the fields that the API shows, in their order. */
export const ATTACHMENTS_OF_EMAIL = (emailId: string): string =>
  `(SELECT coalesce(json_agg(json_build_object(
      'id', file.id, 'filename', file.filename, 'content_type', file.content_type, 'size', file.size,
      'content_id', file.content_id, 'inline', file.content_id IS NOT NULL) ORDER BY file.position), '[]')
    FROM attachments AS file WHERE file.email_id = ${emailId})`;

/**
 * SQL of the expiry of a row of attachments: 30 days after the email was sent; otherwise after it ended; otherwise after it is
 * due, which applies while attempts continue.
 */
const EXPIRES_AT = `(
  SELECT coalesce(
           min(event.created_at) FILTER (WHERE event.type = 'email.sent'),
           min(event.created_at) FILTER (
             WHERE event.type NOT IN ('email.queued', 'email.scheduled', 'email.rescheduled')),
           min(email.scheduled_at),
           min(email.created_at)
         ) + interval '720 hours'
  FROM emails AS email LEFT JOIN email_events AS event ON event.email_id = email.id
  WHERE email.id = attachments.email_id)`;

/** One file as the attachments endpoints show it, without its link. */
export interface ListedAttachment extends Attachment {
  inline: boolean;
  expires_at: string;
  /** True while its content is available. */
  kept: boolean;
}

/**
 * Returns the files of an email, in their order; undefined if the organization has no such email.
 * @param attachmentId returns only this file
 */
export async function findAttachments(
  db: Db,
  orgId: string,
  emailId: string,
  attachmentId: string | null = null,
): Promise<ListedAttachment[] | undefined> {
  const rows = await queryRows<ListedAttachment | { id: null }>(db, {
    name: 'find_attachments',
    text: `SELECT file.*, file.deleted_at IS NULL AND file.expires_at > now() AS kept
           FROM emails AS email LEFT JOIN LATERAL (
             SELECT id, filename, content_type, size::float8 AS size, content_id, content_id IS NOT NULL AS inline,
                    deleted_at, position, ${EXPIRES_AT}::timestamptz(3) AS expires_at
             FROM attachments WHERE email_id = email.id AND ($3::text IS NULL OR id = $3)
           ) AS file ON true
           WHERE email.id = $1 AND email.org_id = $2 ORDER BY file.position`,
    values: [emailId, orgId, attachmentId],
  });
  return rows.length === 0 ? undefined : rows.filter((row) => row.id !== null);
}

/**
 * Finds the file of a download link, unless the link or the file has expired.
 * @param linkExpires Unix seconds
 */
export function findDownload(
  db: Db,
  emailId: string,
  attachmentId: string,
  linkExpires: number,
): Promise<Attachment | undefined> {
  return queryRow(db, {
    name: 'find_download',
    text: `SELECT id, filename, content_type, size::float8 AS size, content_id FROM attachments
           WHERE id = $1 AND email_id = $2 AND deleted_at IS NULL AND ${EXPIRES_AT} > now()
             AND to_timestamp($3) > now()`,
    values: [attachmentId, emailId, linkExpires],
  });
}

/** Returns the time `seconds` from now by the database's clock, in Unix seconds. */
export async function secondsFromNow(db: Db, seconds: number): Promise<number> {
  return Math.floor((await readClock(db)).getTime() / 1_000) + seconds;
}

/**
 * Finds expired files among the next `limit` files to check. Schedules the others for another check when they may have expired:
 * for unsent email at least 30 days from now. Expired files move to the end of the queue, so that those which cannot be
 * deleted do not block the others.
 * @returns ids of files to delete, and whether there may be more files to check
 */
export async function findExpired(db: Db, limit: number): Promise<{ expired: string[]; more: boolean }> {
  const rows = await queryRows<{ id: string; expired: boolean }>(db, {
    name: 'find_expired',
    text: `WITH looked AS MATERIALIZED (
             SELECT id, email_id, ${EXPIRES_AT} AS expires_at,
                    (SELECT ${IS_OPEN('email')}
                     FROM emails AS email WHERE email.id = attachments.email_id) AS waits
             FROM attachments WHERE deleted_at IS NULL AND look_at <= now() ORDER BY look_at LIMIT $1
           ), put_off AS (
             UPDATE attachments AS file
             SET look_at = CASE WHEN waits THEN now() + interval '720 hours' ELSE greatest(looked.expires_at, now()) END
             FROM looked WHERE file.id = looked.id
           )
           SELECT id, waits IS NOT TRUE AND coalesce(expires_at <= now(), true) AS expired FROM looked`,
    values: [limit],
  });
  return { expired: rows.filter((row) => row.expired).map((row) => row.id), more: rows.length === limit };
}

/** Records that files were deleted from the store. */
export async function markDeleted(db: Db, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await execute(
    db,
    `WITH removed AS (
       UPDATE attachments SET deleted_at = now() WHERE id = ANY ($1) AND deleted_at IS NULL
       RETURNING org_id, size AS bytes
     )${SUBTRACT_STORED_BYTES}
     SELECT`,
    [ids],
  );
}

/** Returns the ids of files that belong to an email or are reserved for one. */
export async function findKnownFiles(db: Db, ids: readonly string[]): Promise<Set<string>> {
  const known = await queryColumn<string>(
    db,
    `SELECT id FROM attachments WHERE id = ANY ($1) AND deleted_at IS NULL
     UNION SELECT id FROM file_reservations WHERE id = ANY ($1)`,
    [ids],
  );
  return new Set(known);
}
