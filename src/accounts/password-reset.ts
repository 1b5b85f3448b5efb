import { digest } from '../lib/digest.ts';
import { findReset, insertReset, redeemReset } from '../store/accounts/password-resets.ts';
import { findUser, findUserByEmail, lockPassword } from '../store/accounts/users.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import { auditBySystem, auditByUser } from './audit.ts';
import { newToken } from './sign-in.ts';
import { newPasswordHash, recoverAccount } from './users.ts';

/** Creates a link to choose a new password. @returns its token, or undefined if no user has this address */
export async function createReset(pool: Pool, email: string): Promise<string | undefined> {
  const user = await findUserByEmail(pool, email);
  if (!user) return undefined;
  const token = newToken();
  await transaction(pool, async (client) => {
    await insertReset(client, digest(token), user.id);
    await auditBySystem(client, user, 'account.request-reset');
  });
  return token;
}

/** Returns true if a token of `createReset` was not used and has not expired. */
export async function isResetToken(db: Db, token: string): Promise<boolean> {
  return (await findReset(db, digest(token))) !== undefined;
}

/**
 * Takes an account over with a new password by the token of an emailed link, which also confirms the address.
 * @returns false if the link was used or has expired
 * @throws ServiceError validation_error
 */
export async function resetPassword(pool: Pool, token: string, password: string): Promise<boolean> {
  const sha256 = digest(token);
  const userId = await findReset(pool, sha256);
  if (userId === undefined) return false;
  const owner = await findUser(pool, userId);
  if (!owner) return false;
  const hash = await newPasswordHash(pool, owner, password);
  return transaction(pool, async (client) => {
    // Lock the user before the link, in the same order as a change of the password, to avoid a deadlock.
    await lockPassword(client, userId);
    const user = (await redeemReset(client, sha256)) ? await findUser(client, userId) : undefined;
    if (!user) return false;
    const sessions = await recoverAccount(client, user, hash);
    await auditByUser(client, user, 'account.reset-password', { sessions });
    return true;
  });
}
