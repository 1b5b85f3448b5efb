import { digest } from '../lib/digest.ts';
import { networkOf } from '../lib/ip-ranges.ts';
import type { User } from '../store/accounts/users.ts';
import type { Db } from '../store/postgres/pool.ts';
import {
  type AttemptKind,
  type AttemptSubject,
  countAttempts,
  deleteAttempts,
  deleteAttemptsOf,
  refundAttempts,
} from '../store/accounts/sign-ins.ts';

const WINDOW_SECONDS = 900;
const HOUR_SECONDS = 3_600;
const DAY_SECONDS = 86_400;

/**
 * Limits of failed attempts and sent emails per window. A pair is an email together with a network. The limit of an email (`email`)
 * counts only attempts from unknown browsers. A single network cannot reach it, because `pair_day` is lower.
 */
const LIMITS: Readonly<Record<AttemptKind, { readonly max: number; readonly windowSeconds: number }>> = {
  network: { max: 60, windowSeconds: WINDOW_SECONDS },
  pair: { max: 10, windowSeconds: WINDOW_SECONDS },
  pair_day: { max: 50, windowSeconds: DAY_SECONDS },
  email: { max: 250, windowSeconds: DAY_SECONDS },
  browser: { max: 10, windowSeconds: WINDOW_SECONDS },
  password: { max: 10, windowSeconds: WINDOW_SECONDS },
  code: { max: 10, windowSeconds: WINDOW_SECONDS },
  reset_network: { max: 20, windowSeconds: HOUR_SECONDS },
  reset_pair: { max: 3, windowSeconds: HOUR_SECONDS },
  reset_email: { max: 20, windowSeconds: DAY_SECONDS },
  invite_org: { max: 200, windowSeconds: DAY_SECONDS },
  invite_email: { max: 10, windowSeconds: DAY_SECONDS },
};

export interface Attempt {
  /** In lower case. */
  readonly email: string;
  /** The IP address of the client. */
  readonly address: string;
  /** The id of a browser in which this user has signed in before. */
  readonly browserId: string | undefined;
}

/**
 * Counts an attempt for each of its subjects, in stages. It stops at the first stage that exceeds a limit: a network over its own
 * limit does not raise the counts of the emails that it tries.
 * @returns the seconds to wait if a limit is exceeded
 */
export async function countAttempt(db: Db, attempt: Attempt): Promise<number | undefined> {
  return countStages(db, stagesOf(attempt));
}

async function countStages(db: Db, stages: readonly AttemptSubject[][]): Promise<number | undefined> {
  for (const stage of stages) {
    const waitSeconds = await count(db, stage);
    if (waitSeconds !== undefined) return waitSeconds;
  }
  return undefined;
}

/** Reverts the counts of a successful attempt. Clears earlier failures of the same browser, or of the same email and network. */
export async function recordSuccess(db: Db, attempt: Attempt): Promise<void> {
  const subjects = stagesOf(attempt).flat();
  const shared = subjects.filter(({ kind }) => kind === 'network' || kind === 'email');
  await refundAttempts(db, shared);
  await deleteAttempts(
    db,
    subjects.filter((each) => !shared.includes(each)),
  );
}

/**
 * Counts a request for a password reset even if no user has this email, so that the limit reveals no account.
 * @param email in lower case
 * @returns the seconds to wait if a limit is exceeded
 */
export async function countResetRequest(db: Db, email: string, address: string): Promise<number | undefined> {
  const network = networkOf(address);
  return countStages(db, [
    [subject('reset_network', [network])],
    [subject('reset_pair', [email, network], email)],
    [subject('reset_email', [email], email)],
  ]);
}

/** Counts an emailed invitation, because its recipient may not want it. @returns the seconds to wait if a limit is exceeded */
export async function countInvitation(db: Db, orgId: string, email: string): Promise<number | undefined> {
  return countStages(db, [[subject('invite_org', [orgId])], [subject('invite_email', [email], email)]]);
}

type CheckedUser = Pick<User, 'id' | 'email'>;

/** A check of a user's current password, or of a code of the second factor. */
type Check = 'password' | 'code';

/** Counts a check. @returns the seconds to wait if a limit is exceeded */
export async function countCheck(db: Db, check: Check, user: CheckedUser): Promise<number | undefined> {
  return count(db, [checkSubject(check, user)]);
}

/** Deletes the counts of a user's checks after one has succeeded. */
export async function resetChecks(db: Db, check: Check, user: CheckedUser): Promise<void> {
  await deleteAttempts(db, [checkSubject(check, user)]);
}

/** Counts a sign-in by OpenID Connect, before its email is known. @returns the seconds to wait if a limit is exceeded */
export async function countNetworkAttempt(db: Db, address: string): Promise<number | undefined> {
  return count(db, [networkSubject(address)]);
}

/** Reverts the count of an attempt that succeeded, or that failed because the identity provider was unavailable. */
export async function refundNetworkAttempt(db: Db, address: string): Promise<void> {
  await refundAttempts(db, [networkSubject(address)]);
}

/** Clears every limit that counts an email. @returns the number of deleted counts */
export async function unlock(db: Db, email: string): Promise<number> {
  return deleteAttemptsOf(db, digest(email), Object.keys(LIMITS) as AttemptKind[]);
}

/** Clears the limits on wrong passwords. Those on codes and emailed links stay, or a password reset would renew them. */
export async function clearPasswordLimits(db: Db, email: string): Promise<void> {
  await deleteAttemptsOf(db, digest(email), ['pair', 'pair_day', 'email', 'browser', 'password']);
}

async function count(db: Db, subjects: readonly AttemptSubject[]): Promise<number | undefined> {
  const counts = await countAttempts(db, subjects);
  const over = counts.filter(({ kind, attempts }) => attempts > LIMITS[kind].max);
  return over.length === 0 ? undefined : Math.max(1, ...over.map(({ seconds }) => seconds));
}

/** A known browser has its own count, which attempts from elsewhere cannot raise. */
function stagesOf({ email, address, browserId }: Attempt): AttemptSubject[][] {
  const network = networkOf(address);
  if (browserId !== undefined) return [[subject('browser', [email, browserId], email)]];
  return [
    [networkSubject(address)],
    [subject('pair', [email, network], email), subject('pair_day', [email, network], email)],
    [subject('email', [email], email)],
  ];
}

function networkSubject(address: string): AttemptSubject {
  return subject('network', [networkOf(address)]);
}

function checkSubject(check: Check, { id, email }: CheckedUser): AttemptSubject {
  return subject(check, [id], email);
}

function subject(kind: AttemptKind, parts: readonly string[], email?: string): AttemptSubject {
  return {
    kind,
    subject: digest(JSON.stringify(parts)),
    email_sha256: email === undefined ? null : digest(email),
    window_seconds: LIMITS[kind].windowSeconds,
  };
}
