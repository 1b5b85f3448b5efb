import { type Db, execute, queryRows } from '../postgres/pool.ts';

/** Stores the sealed link of an email for the time in which the email may be sent. */
export async function insertAccountLink(db: Db, emailId: string, sealed: Buffer): Promise<void> {
  await execute(
    db,
    `INSERT INTO account_links (email_id, sealed, expires_at) VALUES ($1, $2, now() + interval '7 days')`,
    [emailId, sealed],
  );
}

/** An email whose body contains the placeholder of a link. */
export interface AccountLink {
  readonly id: string;
  /** Null if no link is stored for it, or no longer. */
  readonly sealed: Buffer | null;
  /** True if the email was accepted with an API key, as all members of batches are. */
  readonly has_api_key: boolean;
}

/** Returns the sealed links of emails. */
export function findAccountLinks(db: Db, emailIds: readonly string[]): Promise<AccountLink[]> {
  return queryRows(
    db,
    `SELECT emails.id, link.sealed, emails.key_id IS NOT NULL OR emails.batch_id IS NOT NULL AS has_api_key
     FROM emails LEFT JOIN account_links AS link ON link.email_id = emails.id WHERE emails.id = ANY ($1)`,
    [emailIds],
  );
}
