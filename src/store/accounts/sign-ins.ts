import { type Db, execute, queryRows } from '../postgres/pool.ts';
import { columns } from '../postgres/columns.ts';

/** What is counted in a window shorter than a day, and by day as the kind with `_day`. */
export type ShortKind = 'network' | 'pair' | 'browser' | 'password' | 'code' | 'reset_network' | 'reset_pair';
/** What is counted by day only. */
export type DayKind =
  'email' | 'code_renewal' | 'reset_email' | 'invite_org' | 'invite_new' | 'invite_email' | 'notice';
export type AttemptKind = ShortKind | `${ShortKind}_day` | DayKind;

/** A subject that attempts are counted for. */
export interface AttemptSubject {
  readonly kind: AttemptKind;
  /** SHA-256 of what is counted. */
  readonly subject: Buffer;
  /** SHA-256 of the email; null for a network. */
  readonly email_sha256: Buffer | null;
  /** The length of the window that its first attempt starts. */
  readonly window_seconds: number;
}

const MAX_COUNT = 1_000_000;

/**
 * Counts an attempt for each subject before its result is known, so that a burst cannot overtake the count.
 * @returns the attempts in the current windows, this one included, and the seconds until they end
 */
export function countAttempts(
  db: Db,
  subjects: readonly AttemptSubject[],
): Promise<{ kind: AttemptKind; attempts: number; seconds: number }[]> {
  return queryRows(
    db,
    `INSERT INTO sign_in_attempts AS earlier (kind, subject, email_sha256, attempts, expires_at)
     SELECT kind, subject, email_sha256, 1, now() + make_interval(secs => window_seconds)
     FROM unnest($1::text[], $2::bytea[], $3::bytea[], $4::float8[]) AS input(kind, subject, email_sha256, window_seconds)
     ORDER BY kind, subject
     ON CONFLICT (kind, subject) DO UPDATE SET
       attempts = CASE WHEN earlier.expires_at <= now() THEN 1 ELSE least(earlier.attempts, ${MAX_COUNT}) + 1 END,
       expires_at = CASE WHEN earlier.expires_at <= now() THEN excluded.expires_at ELSE earlier.expires_at END
     RETURNING kind, attempts, ceil(extract(epoch FROM expires_at - now()))::integer AS seconds`,
    columns(subjects, 'kind', 'subject', 'email_sha256', 'window_seconds'),
  );
}

/** Subtracts an attempt that succeeded. Deletes counts of zero. */
export async function refundAttempts(
  db: Db,
  subjects: readonly Pick<AttemptSubject, 'kind' | 'subject'>[],
): Promise<void> {
  const values = columns(subjects, 'kind', 'subject');
  const isSubject = `(kind, subject) IN (SELECT * FROM unnest($1::text[], $2::bytea[]))`;
  await execute(db, `UPDATE sign_in_attempts SET attempts = attempts - 1 WHERE ${isSubject} AND attempts > 0`, values);
  await execute(db, `DELETE FROM sign_in_attempts WHERE ${isSubject} AND attempts = 0`, values);
}

/** Deletes counts, in the order in which `countAttempts` locks them. */
export async function deleteAttempts(
  db: Db,
  subjects: readonly Pick<AttemptSubject, 'kind' | 'subject'>[],
): Promise<void> {
  await execute(
    db,
    `DELETE FROM sign_in_attempts WHERE (kind, subject) IN (
       SELECT kind, subject FROM sign_in_attempts WHERE (kind, subject) IN (SELECT * FROM unnest($1::text[], $2::bytea[]))
       ORDER BY kind, subject FOR UPDATE)`,
    columns(subjects, 'kind', 'subject'),
  );
}

/** Deletes the counts of an email, in known browsers and elsewhere. @returns how many there were */
export function deleteAttemptsOf(db: Db, emailSha256: Buffer, kinds: readonly AttemptKind[]): Promise<number> {
  return execute(db, `DELETE FROM sign_in_attempts WHERE email_sha256 = $1 AND kind = ANY ($2)`, [emailSha256, kinds]);
}
