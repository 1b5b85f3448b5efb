import { digest } from '../lib/digest.ts';
import { networkOf } from '../lib/ip-ranges.ts';
import type { Db } from '../store/postgres/pool.ts';
import {
  type AttemptKind,
  type AttemptSubject,
  countAttempts,
  deleteAttempts,
  deleteAttemptsOf,
  uncountAttempts,
} from '../store/accounts/sign-ins.ts';

const WINDOW_SECONDS = 900;
const HOUR = 3_600;
const DAY = 86_400;

/**
 * Failed attempts, and emails sent, per window. The limit of one email counts only browsers in which its user has never signed in, and one
 * network alone cannot reach it (`pair_day`).
 */
const LIMITS: Readonly<Record<AttemptKind, { readonly max: number; readonly windowSeconds: number }>> = {
  network: { max: 60, windowSeconds: WINDOW_SECONDS },
  pair: { max: 10, windowSeconds: WINDOW_SECONDS },
  pair_day: { max: 50, windowSeconds: DAY },
  email: { max: 250, windowSeconds: DAY },
  browser: { max: 10, windowSeconds: WINDOW_SECONDS },
  password: { max: 10, windowSeconds: WINDOW_SECONDS },
  code: { max: 10, windowSeconds: WINDOW_SECONDS },
  reset_network: { max: 20, windowSeconds: HOUR },
  reset_pair: { max: 3, windowSeconds: HOUR },
  reset_email: { max: 20, windowSeconds: DAY },
  invite_org: { max: 200, windowSeconds: DAY },
  invite_email: { max: 10, windowSeconds: DAY },
};

export interface Attempt {
  /** In lower case. */
  readonly email: string;
  /** The address of the network peer. */
  readonly address: string;
  /** The id of a browser in which this user has signed in before. */
  readonly browserId: string | undefined;
}

/**
 * Counts an attempt per subject and stops at the first subject over its limit: an address over its own limit does not
 * raise the counts of the emails that it tries.
 * @returns the seconds to wait when a limit is exceeded
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

/** Reverts the counts of a successful attempt, and clears earlier failures of the same browser or network. */
export async function forgiveAttempt(db: Db, attempt: Attempt): Promise<void> {
  const subjects = stagesOf(attempt).flat();
  const shared = subjects.filter(({ kind }) => kind === 'network' || kind === 'email');
  await uncountAttempts(db, shared);
  await deleteAttempts(
    db,
    subjects.filter((each) => !shared.includes(each)),
  );
}

/**
 * Counts a request for a password reset, whether or not a user has this email, so that the limit discloses no account.
 * @param email in lower case
 * @returns the seconds to wait when a limit is exceeded
 */
export async function countResetRequest(db: Db, email: string, address: string): Promise<number | undefined> {
  const network = networkOf(address);
  return countStages(db, [
    [subject('reset_network', [network])],
    [subject('reset_pair', [email, network], email)],
    [subject('reset_email', [email], email)],
  ]);
}

/** Counts an emailed invitation: strangers get them. @returns the seconds to wait when a limit is exceeded */
export async function countInvitation(db: Db, orgId: string, email: string): Promise<number | undefined> {
  return countStages(db, [[subject('invite_org', [orgId])], [subject('invite_email', [email], email)]]);
}

/** Counts a check of a signed-in user's current password. @returns the seconds to wait when a limit is exceeded */
export async function countPasswordCheck(db: Db, user: { id: string; email: string }): Promise<number | undefined> {
  return count(db, [passwordSubject(user)]);
}

export async function forgivePasswordChecks(db: Db, user: { id: string; email: string }): Promise<void> {
  await deleteAttempts(db, [passwordSubject(user)]);
}

/** Counts a sign-in by OpenID Connect, whose email is not known yet. @returns the seconds to wait when a limit is exceeded */
export async function countNetworkAttempt(db: Db, address: string): Promise<number | undefined> {
  return count(db, [networkSubject(address)]);
}

/** Reverts the count of an attempt that succeeded, or that the identity provider could not answer. */
export async function forgiveNetworkAttempt(db: Db, address: string): Promise<void> {
  await uncountAttempts(db, [networkSubject(address)]);
}

/** Counts a check of a user's second factor. @returns the seconds to wait when a limit is exceeded */
export async function countCode(db: Db, { id, email }: { id: string; email: string }): Promise<number | undefined> {
  return count(db, [subject('code', [id], email)]);
}

export async function forgiveCodes(db: Db, { id, email }: { id: string; email: string }): Promise<void> {
  await deleteAttempts(db, [subject('code', [id], email)]);
}

/** Clears every limit that an email has reached. @returns the number of counts removed */
export async function unlock(db: Db, email: string): Promise<number> {
  return deleteAttemptsOf(db, digest(email));
}

async function count(db: Db, subjects: readonly AttemptSubject[]): Promise<number | undefined> {
  const counts = await countAttempts(db, subjects);
  const over = counts.filter(({ kind, attempts }) => attempts > LIMITS[kind].max);
  return over.length === 0 ? undefined : Math.max(1, ...over.map(({ seconds }) => seconds));
}

/** A known browser has its own count, which attempts elsewhere cannot raise. */
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

function passwordSubject({ id, email }: { id: string; email: string }): AttemptSubject {
  return subject('password', [id], email);
}

function subject(kind: AttemptKind, parts: readonly string[], email?: string): AttemptSubject {
  return {
    kind,
    subject: digest(JSON.stringify(parts)),
    email_sha256: email === undefined ? null : digest(email),
    window_seconds: LIMITS[kind].windowSeconds,
  };
}
