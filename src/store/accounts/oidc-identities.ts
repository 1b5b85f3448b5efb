import { type Db, execute, executeOne, queryRow, queryRows } from '../postgres/pool.ts';
import type { User } from './users.ts';

/** Identifies a person at an identity provider. */
export interface IdentityKey {
  readonly issuer: string;
  readonly subject: string;
}

/** Returns the user of an identity, which stays linked until the transaction ends. */
export function findIdentityUser(db: Db, { issuer, subject }: IdentityKey): Promise<User | undefined> {
  return queryRow(
    db,
    `SELECT users.id, email, name FROM oidc_identities JOIN users ON users.id = user_id
     WHERE issuer = $1 AND subject = $2 FOR KEY SHARE OF oidc_identities`,
    [issuer, subject],
  );
}

/** The identities of a user. */
export function listIdentities(db: Db, userId: string): Promise<{ issuer: string }[]> {
  return queryRows(db, `SELECT issuer FROM oidc_identities WHERE user_id = $1 ORDER BY issuer`, [userId]);
}

/** Links an identity to a user. @returns false if it is linked already, or the user has another identity of this issuer */
export function insertIdentity(db: Db, { issuer, subject }: IdentityKey, userId: string): Promise<boolean> {
  return executeOne(
    db,
    `INSERT INTO oidc_identities (issuer, subject, user_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
    [issuer, subject, userId],
  );
}

/** Removes all identities of a user. @returns how many there were */
export function deleteIdentities(db: Db, userId: string): Promise<number> {
  return execute(db, `DELETE FROM oidc_identities WHERE user_id = $1`, [userId]);
}
