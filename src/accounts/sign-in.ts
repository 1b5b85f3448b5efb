import { randomBytes } from 'node:crypto';
import { digest } from '../lib/digest.ts';
import { notFound } from '../domain/errors.ts';
import { networksOf } from '../lib/ip-ranges.ts';
import type { KnownBrowsers } from '../domain/known-browser.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import {
  deleteOtherSessions,
  deleteSession,
  deleteSessionById,
  insertSession,
  type SessionClient,
} from '../store/accounts/sessions.ts';
import { needsOidc } from '../store/accounts/organizations.ts';
import { bareAddress } from '../domain/email/address.ts';
import { findSecondFactor } from '../store/accounts/second-factors.ts';
import { findUserByEmail, lockPassword, type User, type UserWithPassword } from '../store/accounts/users.ts';
import { type Detail, auditBySystem, auditByUser } from './audit.ts';
import { isPassword } from './passwords.ts';
import { type Attempt, countAttempt, recordSuccess } from './sign-in-limits.ts';

/** Longer emails and passwords are rejected without a check. */
const MAX_LENGTH = 1_000;

type SignIn =
  /** `browser` is the token by which this browser is recognized later. */
  | { readonly kind: 'signed_in'; readonly token: string; readonly browser: string; readonly userId: string }
  /** The password is correct; a code of the second factor is still required. */
  | { readonly kind: 'code_required'; readonly challenge: string }
  /** The password is correct, but all organizations of the user require sign-in by OpenID Connect. */
  | { readonly kind: 'oidc_required' }
  /** The email or the password is wrong. */
  | { readonly kind: 'wrong_credentials' }
  | { readonly kind: 'rate_limited'; readonly seconds: number };

interface SignInRequest extends SessionClient {
  readonly email: string;
  readonly password: string;
  /** The token in the cookie of a known browser. */
  readonly browser: string | undefined;
}

interface SignInDeps {
  readonly pool: Pool;
  readonly knownBrowsers: KnownBrowsers;
  /** Issues the token with which a user who has a second factor continues. */
  readonly issueChallenge: (user: UserWithPassword, now: number) => string;
}

/** Generates a token: 32 random bytes in base64url. */
export function newToken(): string {
  return randomBytes(32).toString('base64url');
}

/**
 * Starts a session for a user with a correct password. Attempts are counted in Postgres, across all processes.
 * @throws ServiceError unavailable if too many passwords are being checked
 */
export async function signIn(
  { pool, knownBrowsers, issueChallenge }: SignInDeps,
  { email: typed, password, address, userAgent, browser = '' }: SignInRequest,
): Promise<SignIn> {
  // Postgres cannot store NUL, so no user's email contains it.
  if (typed.length > MAX_LENGTH || password.length > MAX_LENGTH || typed.includes('\0'))
    return { kind: 'wrong_credentials' };
  const email = bareAddress(typed) ?? typed.trim().toLowerCase();
  const browserId = knownBrowsers.read(browser, email, Date.now());
  const attempt: Attempt = { email, address, browserId };
  const isKnown = browserId !== undefined;

  const seconds = await countAttempt(pool, attempt);
  if (seconds !== undefined) return { kind: 'rate_limited', seconds };
  const user = await findUserByEmail(pool, email);
  const holder = isKnown ? browserId : networksOf(address);
  const isRight = await isPassword(password, user?.password, holder, { isPriority: isKnown });
  const detail = { address, known_browser: isKnown };
  if (!isRight || !user) {
    if (user) await auditFailure(pool, user, detail);
    return { kind: 'wrong_credentials' };
  }
  if (await needsOidc(pool, user.id)) {
    // The attempt stays counted, since each one adds an entry to the audit log.
    await auditFailure(pool, user, { ...detail, reason: 'OpenID Connect is required' });
    return { kind: 'oidc_required' };
  }
  await recordSuccess(pool, attempt);
  const factor = await findSecondFactor(pool, user.id);
  if (factor?.is_confirmed) return { kind: 'code_required', challenge: issueChallenge(user, Date.now()) };
  const token = await startPasswordSession(pool, user, { address, userAgent }, detail);
  if (token === undefined) return { kind: 'wrong_credentials' };
  return { kind: 'signed_in', token, browser: knownBrowsers.issue(email, Date.now(), browserId), userId: user.id };
}

/**
 * Starts a session of a user who has signed in by password, and records it.
 * @param user with the hash of the password that was correct
 * @param detail for the audit log
 * @returns undefined if the password was changed since then, which ends all sessions
 */
export async function startPasswordSession(
  pool: Pool,
  user: UserWithPassword,
  from: SessionClient,
  detail: Detail,
): Promise<string | undefined> {
  return transaction(pool, async (client) => {
    if ((await lockPassword(client, user.id)) !== user.password) return undefined;
    return createRecordedSession(client, user, from, detail);
  });
}

/** Creates a session of a user who has signed in, and records it. @param detail for the audit log @returns the session's token */
export async function createRecordedSession(
  client: Db,
  user: User,
  from: SessionClient,
  detail: Detail,
): Promise<string> {
  const token = await createSession(client, user.id, from);
  await auditByUser(client, user, 'account.sign-in', detail);
  return token;
}

/** Creates a session without an entry in the audit log. @returns its token */
export async function createSession(db: Db, userId: string, from: SessionClient): Promise<string> {
  const token = newToken();
  await insertSession(db, digest(token), userId, from);
  return token;
}

export async function signOut(pool: Pool, user: User, token: string): Promise<void> {
  await transaction(pool, async (client) => {
    await deleteSession(client, digest(token));
    await auditByUser(client, user, 'account.sign-out');
  });
}

export async function signOutEverywhere(pool: Pool, user: User): Promise<void> {
  await transaction(pool, async (client) => {
    const sessions = await deleteOtherSessions(client, user.id, null);
    await auditByUser(client, user, 'account.sign-out-everywhere', { sessions });
  });
}

/** Ends a user's sessions except the one with this token. */
export async function signOutElsewhere(pool: Pool, user: User, token: string): Promise<void> {
  await transaction(pool, async (client) => {
    const sessions = await deleteOtherSessions(client, user.id, digest(token));
    await auditByUser(client, user, 'account.sign-out-others', { sessions });
  });
}

/** Ends one session of a user. @throws ServiceError not_found */
export async function endSession(pool: Pool, user: User, id: string): Promise<void> {
  await transaction(pool, async (client) => {
    if (!(await deleteSessionById(client, user.id, id))) throw notFound('session');
    await auditByUser(client, user, 'account.end-session');
  });
}

/** Records a failed attempt. Sign-in limits also limit the number of these entries. */
export async function auditFailure(db: Db, user: User, detail: Detail): Promise<void> {
  await auditBySystem(db, user, 'account.sign-in-failed', detail);
}
