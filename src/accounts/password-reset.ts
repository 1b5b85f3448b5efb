import { digest } from '../lib/digest.ts';
import { insertReset, resetExists, takeReset } from '../store/accounts/password-resets.ts';
import { findUser, findUserByEmail } from '../store/accounts/users.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import { auditBySystem, auditByUser } from './audit.ts';
import { newToken } from './sign-in.ts';
import { newPasswordHash, takeOver } from './users.ts';

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

/** Returns true if the token is valid. */
export function isReset(db: Db, token: string): Promise<boolean> {
  return resetExists(db, digest(token));
}

/**
 * Sets a new password by the token of an emailed link, which also confirms the address. Ends the user's sessions and clears
 * limits on wrong passwords.
 * @returns false if the link was used or has expired
 * @throws ServiceError validation_error
 */
export async function resetPassword(pool: Pool, token: string, password: string): Promise<boolean> {
  if (!(await isReset(pool, token))) return false;
  const hash = await newPasswordHash(password);
  return transaction(pool, async (client) => {
    const userId = await takeReset(client, digest(token));
    const user = userId === undefined ? undefined : await findUser(client, userId);
    if (!user) return false;
    const sessions = await takeOver(client, user, hash);
    await auditByUser(client, user, 'account.reset-password', { sessions });
    return true;
  });
}
