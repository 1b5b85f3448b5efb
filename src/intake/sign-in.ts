import { randomBytes } from 'node:crypto';
import { digest } from '../domain/digest.ts';
import { deleteEndedSessions, insertSession } from '../store/sessions.ts';
import { countTries, uncountTry } from '../store/sign-ins.ts';
import { findUserByEmail } from '../store/users.ts';
import { type Pool, transaction } from '../store/pool.ts';
import { isPassword } from './passwords.ts';

/** Tries in 15 minutes that have not succeeded: for one email, and from one network address. */
const TRIES = { email: 10, address: 60 } as const;
/** Longest email and password that are looked at. */
const LONGEST = 1_000;

/** What became of a try to sign in. */
export type SignIn =
  | { readonly outcome: 'in'; readonly token: string; readonly userId: string }
  /** The same whether the email or the password is wrong. */
  | { readonly outcome: 'wrong' }
  | { readonly outcome: 'wait'; readonly seconds: number };

/** A token that nobody guesses: 32 random bytes in base64url. */
export function newToken(): string {
  return randomBytes(32).toString('base64url');
}

/**
 * Begins a session for who knows the password. Tries are counted in Postgres, so all processes count together.
 * @param address the network address it comes from
 * @throws ServiceError unavailable when too many do so at once
 */
export async function signIn(pool: Pool, email: string, password: string, address: string): Promise<SignIn> {
  if (email.length > LONGEST || password.length > LONGEST) return { outcome: 'wrong' };
  const [byEmail, byAddress] = [`email:${email.trim().toLowerCase()}`, `address:${address}`] as const;
  const tries = await countTries(pool, [byEmail, byAddress]);
  const over = tries.filter((each) => each.tries > (each.subject === byEmail ? TRIES.email : TRIES.address));
  if (over.length > 0) return { outcome: 'wait', seconds: Math.max(1, ...over.map(({ seconds }) => seconds)) };

  const user = await findUserByEmail(pool, email.trim().toLowerCase());
  if (!(await isPassword(password, user?.password)) || !user) return { outcome: 'wrong' };
  await uncountTry(pool, byAddress, byEmail);
  return { outcome: 'in', token: await beginSession(pool, user.id), userId: user.id };
}

/** A new session of a user. @returns its token */
export async function beginSession(pool: Pool, userId: string): Promise<string> {
  const token = newToken();
  await transaction(pool, async (client) => {
    await deleteEndedSessions(client);
    await insertSession(client, digest(token), userId);
  });
  return token;
}
