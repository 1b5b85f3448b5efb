import { type Db, queryRows } from '../postgres/pool.ts';

/** An email that was not sent. */
export interface FailedEmail {
  readonly id: string;
  readonly error: string | null;
  readonly created_at: string;
  /** When it failed. */
  readonly last_event_at: string;
}

/** Selects emails of an organization. */
export interface FailedFilter {
  readonly status: 'failed' | 'rejected';
  /** Inclusive. */
  readonly since: Date;
  /** A part of the error; null for any. */
  readonly errorPart: string | null;
}

/**
 * Lists failed emails of an organization, in the order of their acceptance. Leaves out resent emails: the new email has a status
 * of its own.
 * @param after the last email of the previous call
 */
export function listFailedEmails(
  db: Db,
  orgId: string,
  { status, since, errorPart }: FailedFilter,
  after: Pick<FailedEmail, 'id' | 'created_at'> | null,
  limit: number,
): Promise<FailedEmail[]> {
  return queryRows(db, {
    name: 'list_failed_emails',
    text: `SELECT id, error, created_at, last_event_at FROM emails
           WHERE org_id = $1 AND status = $2 AND resent_as IS NULL AND (created_at, id) > ($5::timestamptz, $6)
             AND last_event_at >= $3 AND ($4::text IS NULL OR strpos(error, $4) > 0)
           ORDER BY created_at, id LIMIT $7`,
    values: [orgId, status, since, errorPart, after?.created_at ?? '-infinity', after?.id ?? '', limit],
  });
}
