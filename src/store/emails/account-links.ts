import { type Db, execute, queryRows } from '../postgres/pool.ts';

/** Stores the sealed link of an email for the time in which the email may be sent. */
export async function insertAccountLink(db: Db, emailId: string, sealed: Buffer): Promise<void> {
  await execute(
    db,
    `INSERT INTO account_links (email_id, sealed, expires_at) VALUES ($1, $2, now() + interval '7 days')`,
    [emailId, sealed],
  );
}

/** The sealed links of those emails that have one. */
export function findAccountLinks(db: Db, emailIds: readonly string[]): Promise<{ id: string; sealed: Buffer }[]> {
  return queryRows(db, `SELECT email_id AS id, sealed FROM account_links WHERE email_id = ANY ($1)`, [emailIds]);
}
