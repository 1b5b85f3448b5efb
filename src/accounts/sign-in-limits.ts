import { digest } from '../lib/digest.ts';
import { networkOf } from '../lib/ip-ranges.ts';
import type { User } from '../store/accounts/users.ts';
import type { Db } from '../store/postgres/pool.ts';
import {
  type AttemptKind,
  type AttemptSubject,
  countAttempts,
  type DayKind,
  deleteAttempts,
  deleteAttemptsOf,
  refundAttempts,
  type ShortKind,
} from '../store/accounts/sign-ins.ts';

const WINDOW_SECONDS = 900;
const HOUR_SECONDS = 3_600;
const DAY_SECONDS = 86_400;

interface WindowLimit {
  readonly max: number;
  readonly windowSeconds: number;
  readonly maxPerDay: number;
}

/**
 * Limits of failed attempts and sent emails per window, each with a limit by day: patience must not be enough to guess. A pair is an
 * email together with a network.
 */
const WINDOW_LIMITS: Readonly<Record<ShortKind, WindowLimit>> = {
  network: { max: 60, windowSeconds: WINDOW_SECONDS, maxPerDay: 600 },
  pair: { max: 10, windowSeconds: WINDOW_SECONDS, maxPerDay: 50 },
  browser: { max: 10, windowSeconds: WINDOW_SECONDS, maxPerDay: 50 },
  password: { max: 10, windowSeconds: WINDOW_SECONDS, maxPerDay: 50 },
  code: { max: 10, windowSeconds: WINDOW_SECONDS, maxPerDay: 30 },
  reset_network: { max: 20, windowSeconds: HOUR_SECONDS, maxPerDay: 100 },
  reset_pair: { max: 3, windowSeconds: HOUR_SECONDS, maxPerDay: 10 },
};

/**
 * Limits by day alone. The limit of an email (`email`) counts only attempts from unknown browsers. A single network cannot reach it,
 * because that of a pair is lower.
 */
const DAY_LIMITS: Readonly<Record<DayKind, number>> = {
  email: 250,
  code_renewal: 2,
  reset_email: 20,
  invite_org: 200,
  invite_new: 20,
  invite_email: 10,
  notice: 5,
};

const KINDS: readonly AttemptKind[] = [
  ...(Object.keys(WINDOW_LIMITS) as ShortKind[]).flatMap((kind) => [kind, `${kind}_day`] as const),
  ...(Object.keys(DAY_LIMITS) as DayKind[]),
];

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

/** Counts of other people's attempts too: a success subtracts itself, and clears none of theirs. */
const SHARED_KINDS: readonly AttemptKind[] = ['network', 'network_day', 'email'];

/** Reverts the counts of a successful attempt. Clears earlier failures of the same browser, or of the same email and network. */
export async function recordSuccess(db: Db, attempt: Attempt): Promise<void> {
  const subjects = stagesOf(attempt).flat();
  const shared = subjects.filter(({ kind }) => SHARED_KINDS.includes(kind));
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
    windowSubjects('reset_network', [network]),
    windowSubjects('reset_pair', [email, network], email),
    [daySubject('reset_email', [email], email)],
  ]);
}

/**
 * Counts an emailed invitation, because its recipient may not want it.
 * @param isNew true if nobody has accepted an invitation of the organization
 * @returns the seconds to wait if a limit is exceeded
 */
export async function countInvitation(
  db: Db,
  orgId: string,
  email: string,
  isNew: boolean,
): Promise<number | undefined> {
  return countStages(db, [
    ...(isNew ? [[daySubject('invite_new', [orgId])]] : []),
    [daySubject('invite_org', [orgId])],
    [daySubject('invite_email', [email], email)],
  ]);
}

/** Counts an email that reports something to a user. @param topic limited by itself @returns false if there were too many */
export async function countNotice(db: Db, email: string, topic: string): Promise<boolean> {
  return (await count(db, [daySubject('notice', [email, topic], email)])) === undefined;
}

type CheckedUser = Pick<User, 'id' | 'email'>;

/** A check of a user's current password, or of a code of the second factor. */
type Check = 'password' | 'code';

interface CheckCount {
  /** The seconds to wait if the limit of the short window is exceeded. */
  readonly waitSeconds: number | undefined;
  /** The same for the limit by day. */
  readonly waitSecondsOfDay: number | undefined;
  /** The attempts of the day, this one included. */
  readonly attemptsOfDay: number;
}

/** Counts a check. */
export async function countCheck(db: Db, check: Check, user: CheckedUser): Promise<CheckCount> {
  const subjects = checkSubjects(check, user);
  const counts = await countAttempts(db, subjects);
  const ofDay = counts.find(({ kind }) => kind === `${check}_day`);
  return {
    waitSeconds: waitOf(counts.filter((each) => each !== ofDay)),
    waitSecondsOfDay: waitOf(ofDay ? [ofDay] : []),
    attemptsOfDay: ofDay?.attempts ?? 0,
  };
}

/**
 * Clears a user's failed checks of the window after one has succeeded. Those of the day stay: others may have made them, and wait for
 * the user's next success.
 */
export async function resetChecks(db: Db, check: Check, user: CheckedUser): Promise<void> {
  const [ofWindow, ofDay] = checkSubjects(check, user);
  await refundAttempts(db, [ofDay]);
  await deleteAttempts(db, [ofWindow]);
}

/** Counts a sign-in by OpenID Connect, before its email is known. @returns the seconds to wait if a limit is exceeded */
export async function countNetworkAttempt(db: Db, address: string): Promise<number | undefined> {
  return count(db, networkSubjects(address));
}

/** Reverts the count of an attempt that succeeded, or that failed because the identity provider was unavailable. */
export async function refundNetworkAttempt(db: Db, address: string): Promise<void> {
  await refundAttempts(db, networkSubjects(address));
}

/** Clears every limit that counts an email. @returns the number of deleted counts */
export async function unlock(db: Db, email: string): Promise<number> {
  return deleteAttemptsOf(db, digest(email), KINDS);
}

/**
 * Clears the limits on wrong passwords after a password reset. Those on emailed links stay. That on codes by day is cleared twice a
 * day, since who guessed codes no longer knows the password; more often, resets would renew the guesses of a person with access to
 * the mailbox.
 */
export async function clearPasswordLimits(db: Db, email: string): Promise<void> {
  const kinds: AttemptKind[] = ['pair', 'pair_day', 'email', 'browser', 'browser_day', 'password', 'password_day'];
  const mayRenew = (await count(db, [daySubject('code_renewal', [email], email)])) === undefined;
  await deleteAttemptsOf(db, digest(email), mayRenew ? [...kinds, 'code_day'] : kinds);
}

async function count(db: Db, subjects: readonly AttemptSubject[]): Promise<number | undefined> {
  return waitOf(await countAttempts(db, subjects));
}

function waitOf(counts: Awaited<ReturnType<typeof countAttempts>>): number | undefined {
  const over = counts.filter(({ kind, attempts }) => attempts > maxOf(kind));
  return over.length === 0 ? undefined : Math.max(1, ...over.map(({ seconds }) => seconds));
}

function maxOf(kind: AttemptKind): number {
  if (kind in DAY_LIMITS) return DAY_LIMITS[kind as DayKind];
  const short = kind.replace(/_day$/, '') as ShortKind;
  return short === kind ? WINDOW_LIMITS[short].max : WINDOW_LIMITS[short].maxPerDay;
}

/** A known browser has its own count, which attempts from elsewhere cannot raise. */
function stagesOf({ email, address, browserId }: Attempt): AttemptSubject[][] {
  const network = networkOf(address);
  if (browserId !== undefined) return [windowSubjects('browser', [email, browserId], email)];
  return [
    networkSubjects(address),
    windowSubjects('pair', [email, network], email),
    [daySubject('email', [email], email)],
  ];
}

function networkSubjects(address: string): AttemptSubject[] {
  return windowSubjects('network', [networkOf(address)]);
}

function checkSubjects(check: Check, { id, email }: CheckedUser): [AttemptSubject, AttemptSubject] {
  return windowSubjects(check, [id], email);
}

/** @returns the subject of the window and that of the day */
function windowSubjects(kind: ShortKind, parts: readonly string[], email?: string): [AttemptSubject, AttemptSubject] {
  return [
    subject(kind, parts, WINDOW_LIMITS[kind].windowSeconds, email),
    subject(`${kind}_day`, parts, DAY_SECONDS, email),
  ];
}

function daySubject(kind: DayKind, parts: readonly string[], email?: string): AttemptSubject {
  return subject(kind, parts, DAY_SECONDS, email);
}

function subject(kind: AttemptKind, parts: readonly string[], windowSeconds: number, email?: string): AttemptSubject {
  return {
    kind,
    subject: digest(JSON.stringify(parts)),
    email_sha256: email === undefined ? null : digest(email),
    window_seconds: windowSeconds,
  };
}
