import { ServiceError } from '../domain/errors.ts';
import type { KnownBrowsers } from '../domain/known-browser.ts';
import { digest } from '../lib/digest.ts';
import type { SecretKeys } from '../lib/secret-key.ts';
import { makeSigner } from '../lib/signer.ts';
import type { SessionClient } from '../store/accounts/sessions.ts';
import { findUser, type UserWithPassword } from '../store/accounts/users.ts';
import { checkCode, type SecondFactorDeps } from './second-factor.ts';
import { auditFailure, startPasswordSession } from './sign-in.ts';

const LIFETIME_MS = 10 * 60_000;
const TOKEN = /^(usr_\w{1,40})\.(\d{1,16})\.([\w-]{43})$/;

type Subject = Pick<UserWithPassword, 'id' | 'password'>;
type Challenges = ReturnType<typeof makeChallenges>;

/**
 * Creates tokens for users whose password was correct and who still have to enter a code of the second factor. A token alone
 * grants no access. It expires after 10 minutes, or when the password changes.
 */
export function makeChallenges(secretKeys: SecretKeys) {
  const signer = makeSigner(secretKeys, 'sign-in challenges');
  const signed = ({ id, password }: Subject, expiresAt: string): string =>
    JSON.stringify([id, expiresAt, digest(password).toString('hex')]);
  return {
    issue: (user: Subject, now: number): string => {
      const expiresAt = String(now + LIFETIME_MS);
      return `${user.id}.${expiresAt}.${signer.sign(signed(user, expiresAt))}`;
    },
    /** @returns the user id in a token, before `verify` has checked it */
    userIdOf: (token: string): string | undefined => TOKEN.exec(token)?.[1],
    verify: (token: string, user: Subject, now: number): boolean => {
      const [, id, expiresAt = '', signature = ''] = TOKEN.exec(token) ?? [];
      return id === user.id && Number(expiresAt) > now && signer.verify(signed(user, expiresAt), signature);
    },
  };
}

interface CodeRequest extends SessionClient {
  readonly challenge: string;
  readonly code: string;
  readonly browser: string | undefined;
}

/**
 * Starts a session for a user whose password was correct and who enters a code.
 * @returns undefined if the challenge is no longer valid
 * @throws ServiceError validation_error for a wrong code, rate_limit_exceeded
 */
export async function completeSignIn(
  deps: SecondFactorDeps & { readonly challenges: Challenges; readonly knownBrowsers: KnownBrowsers },
  { challenge, code, address, userAgent, browser = '' }: CodeRequest,
): Promise<{ token: string; browser: string; userId: string } | undefined> {
  const userId = deps.challenges.userIdOf(challenge);
  const user = userId === undefined ? undefined : await findUser(deps.pool, userId);
  const now = Date.now();
  if (!user || !deps.challenges.verify(challenge, user, now)) return undefined;
  const browserId = deps.knownBrowsers.read(browser, user.email, now);
  const detail = { address, known_browser: browserId !== undefined, second_factor: true };
  await checkCode(deps, user, code).catch(async (error: unknown) => {
    const isWrong = error instanceof ServiceError && error.code === 'validation_error';
    if (isWrong) await auditFailure(deps.pool, user, detail);
    throw error;
  });
  const token = await startPasswordSession(deps.pool, user, { address, userAgent }, detail);
  if (token === undefined) return undefined;
  return { token, browser: deps.knownBrowsers.issue(user.email, now, browserId), userId: user.id };
}
