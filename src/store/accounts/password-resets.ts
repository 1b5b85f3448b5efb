import { type Db, execute, executeOne, queryValue } from '../postgres/pool.ts';

/** Stores the link of a password reset for an hour. @param sha256 of its token */
export async function insertReset(db: Db, sha256: Buffer, userId: string): Promise<void> {
  await execute(
    db,
    `INSERT INTO password_resets (sha256, user_id, expires_at) VALUES ($1, $2, now() + interval '1 hour')`,
    [sha256, userId],
  );
}

/** Returns the user of a link, or undefined if it was redeemed or has expired. */
export function findReset(db: Db, sha256: Buffer): Promise<string | undefined> {
  return queryValue(db, `SELECT user_id FROM password_resets WHERE sha256 = $1 AND expires_at > now()`, [sha256]);
}

/** Redeems a link. @returns false if it was redeemed or has expired */
export function redeemReset(db: Db, sha256: Buffer): Promise<boolean> {
  return executeOne(db, `DELETE FROM password_resets WHERE sha256 = $1 AND expires_at > now()`, [sha256]);
}
