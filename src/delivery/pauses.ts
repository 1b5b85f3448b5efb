import { performance } from 'node:perf_hooks';
import type { Logger } from 'pino';
import type { OutgoingEmail } from '../domain/email/outgoing.ts';
import type { EmailProvider } from '../providers/email-provider.ts';
import type { Attempt } from '../store/emails/attempts.ts';
import { closePauses, openPauses, type ProviderPause, readPauses, takeProbe } from '../store/upkeep/provider-pauses.ts';
import type { Db, Pool } from '../store/postgres/pool.ts';

/** Time for which a worker caches pauses. */
const CACHE_TTL_MS = 1_000;
/** Bounds of the delay until a message that waits for a paused account or a suspended organization is claimed again. */
const MIN_RETRY_MS = 5_000;
const MAX_RETRY_MS = 600_000;

/** Delay of a message whose provider refused our account; by then the account is paused. */
export const PAUSE_RETRY_MS = 60_000;

/** The state of our account that a provider's answer reveals. */
export interface AccountAnswer {
  readonly provider: string;
  /** The senders of the message that can be paused separately: see `sendersOf`, or the id of a number. */
  readonly senders: readonly string[];
  /** The reason and the refused sender, empty for the whole account; undefined if the provider accepted the message. */
  readonly refusal?: { readonly reason: string; readonly sender: string };
}

/** The sender name of a provider's stream. It cannot equal a domain, which contains no colon. */
function streamSender(stream: string): string {
  return `stream:${stream}`;
}

const ORGANIZATION_PREFIX = 'organization:';
const HANGING_PREFIX = 'hanging:';

/** The senders of an email that can be paused separately, by scope. */
interface EmailSenders {
  /** Its domain. */
  readonly sender: string;
  /** Its organization, while refusals of that one alone may concern the account. */
  readonly organization: string;
  /** Its organization, while too many of its calls hang. */
  readonly hanging: string;
  /** The provider's stream. */
  readonly stream?: string;
}

export function sendersOf(provider: EmailProvider, email: OutgoingEmail, orgId: string): EmailSenders {
  const stream = provider.streamOf?.(email);
  return {
    sender: email.from.domain,
    organization: `${ORGANIZATION_PREFIX}${orgId}`,
    hanging: `${HANGING_PREFIX}${orgId}`,
    ...(stream !== undefined && { stream: streamSender(stream) }),
  };
}

/** The answer that pauses an organization at a provider, which leaves too many of its calls without a reply. */
export function hangingAnswer(provider: string, orgId: string): AccountAnswer {
  const reason = 'The provider does not answer in time for emails of this organization.';
  return { provider, senders: [], refusal: { reason, sender: `${HANGING_PREFIX}${orgId}` } };
}

/** Circuit breakers of provider accounts, shared by all workers through Postgres. */
export interface ProviderPauses {
  /** The open pauses, cached for at most a second. */
  readonly current: () => Promise<readonly ProviderPause[]>;
  /** Opens pauses for refused accounts, and closes those that an answer shows to work. Never rejects. */
  readonly record: (answers: readonly AccountAnswer[]) => Promise<void>;
}

export function makeProviderPauses(pool: Pool, log: Pick<Logger, 'error' | 'info' | 'warn'>): ProviderPauses {
  let cached: readonly ProviderPause[] = [];
  let readAt = -Infinity;
  let reading: Promise<readonly ProviderPause[]> | undefined;

  async function read(): Promise<readonly ProviderPause[]> {
    cached = await readPauses(pool);
    readAt = performance.now();
    return cached;
  }

  async function open(answers: readonly AccountAnswer[]): Promise<void> {
    let refused = answers.flatMap(({ provider, refusal }) => (refusal ? { provider, ...refusal } : []));
    if (refused.length === 0) return;
    if (refused.some(isUnproven)) refused = withProof(refused, await read());
    await openPauses(pool, refused);
    const fresh = refused.find((each) => !cached.some((pause) => isSame(pause, each)));
    if (fresh) log.error(fresh, 'provider account paused');
    readAt = -Infinity;
  }

  async function close(answers: readonly AccountAnswer[]): Promise<void> {
    const ended = cached.filter((pause) => answers.some((answer) => isResumedBy(pause, answer)));
    if (ended.length === 0) return;
    await closePauses(pool, ended);
    cached = cached.filter((pause) => !ended.includes(pause));
    for (const { provider, sender, ageMs } of ended) log.info({ provider, sender, ageMs }, 'provider account resumed');
  }

  return {
    current() {
      if (performance.now() - readAt <= CACHE_TTL_MS) return Promise.resolve(cached);
      reading ??= read().finally(() => (reading = undefined));
      return reading;
    },
    async record(answers) {
      try {
        await close(answers);
        await open(answers);
      } catch (error) {
        // The next answer repeats the update.
        log.warn({ err: error }, 'could not update pauses of provider accounts');
      }
    },
  };
}

function isSame(a: Pick<ProviderPause, 'provider' | 'sender'>, b: Pick<ProviderPause, 'provider' | 'sender'>): boolean {
  return a.provider === b.provider && a.sender === b.sender;
}

function isPaused(pause: ProviderPause, provider: string, senders: readonly string[]): boolean {
  return pause.provider === provider && (pause.sender === '' || senders.includes(pause.sender));
}

type Refusal = Pick<ProviderPause, 'provider' | 'sender' | 'reason'>;

function isUnproven({ sender }: Pick<Refusal, 'sender'>): boolean {
  return sender.startsWith(ORGANIZATION_PREFIX);
}

/**
 * Turns unproven refusals into refusals of the whole account if a second organization was refused too, or if it is paused
 * already. One message of one organization, say with content that a firewall refuses, thus pauses no other organization.
 */
function withProof(refused: readonly Refusal[], pauses: readonly Refusal[]): Refusal[] {
  const known = [...refused, ...pauses];
  return refused.map((refusal) => {
    const isProof = ({ provider, sender }: Refusal): boolean =>
      provider === refusal.provider && (sender === '' || (isUnproven({ sender }) && sender !== refusal.sender));
    return isUnproven(refusal) && known.some(isProof) ? { ...refusal, sender: '' } : refusal;
  });
}

/** A refusal of one sender shows that the account as a whole works, an unproven one does not. */
function isResumedBy(pause: ProviderPause, { provider, senders, refusal }: AccountAnswer): boolean {
  if (!refusal) return isPaused(pause, provider, senders);
  return refusal.sender !== '' && !isUnproven(refusal) && isPaused(pause, provider, []);
}

/** Returns the pause that blocks messages with these senders, if any. @param attempt the last attempt of the message */
export type Gate = (
  db: Db,
  provider: string,
  senders: readonly string[],
  attempt: Attempt | undefined,
) => Promise<ProviderPause | undefined>;

/**
 * Creates a gate for one claim. It lets a message through as the probe of a paused account, at most one per pause.
 */
export function makeGate(pauses: readonly ProviderPause[]): Gate {
  const probed = new Set<ProviderPause>();
  return async (db, provider, senders, attempt) => {
    const holding = pauses.filter((each) => isPaused(each, provider, senders));
    // A message that was refused itself may be the only one that is: messages that only wait for the account probe it before.
    const wasRefused = typeof attempt?.accountRefusedForMs === 'number';
    const blocking = holding.find(
      (pause) => probed.has(pause) || pause.probeInMs + (wasRefused ? waitMs(pause.ageMs) : 0) > 0,
    );
    if (blocking) return blocking;
    // The account's probe is taken last: if another worker has taken the sender's, the account's stays for other senders.
    for (const pause of holding.sort((a, b) => Number(a.sender === '') - Number(b.sender === ''))) {
      probed.add(pause);
      if (!(await takeProbe(db, pause))) return pause;
    }
    return undefined;
  };
}

/** Returns the first provider that is not paused for this email, otherwise the pause of the first provider. */
export async function firstUnpaused(
  gate: Gate,
  db: Db,
  providers: readonly EmailProvider[],
  email: OutgoingEmail,
  orgId: string,
  attempt: Attempt | undefined,
): Promise<{ readonly provider: EmailProvider } | { readonly pause: ProviderPause }> {
  const pauses: ProviderPause[] = [];
  for (const provider of providers) {
    const pause = await gate(db, provider.name, Object.values(sendersOf(provider, email, orgId)), attempt);
    if (!pause) return { provider };
    pauses.push(pause);
  }
  return { pause: pauses[0] as ProviderPause };
}

/** The decision for a message whose providers are all paused. */
type PausedVerdict =
  { readonly kind: 'wait'; readonly afterMs: number } | { readonly kind: 'fail'; readonly error: string };

/**
 * Decides whether a message whose providers are all paused waits or fails. Its waiting time counts from the first attempt at which
 * the account was refused; without one, from the later of its due time and the start of the pause.
 * @param attempt the last attempt of the message
 * @param overdueMs the time for which the message has been due
 * @param retryForMs the maximum time for which a message waits because of its account
 */
export function judgePaused(
  { reason, ageMs }: ProviderPause,
  attempt: Attempt | undefined,
  overdueMs: number,
  retryForMs: number,
): PausedVerdict {
  const waitedMs = attempt?.accountRefusedForMs ?? Math.min(overdueMs, ageMs);
  if (waitedMs >= retryForMs) return { kind: 'fail', error: accountRefusedError(reason, retryForMs) };
  return { kind: 'wait', afterMs: pauseRetryMs(ageMs) };
}

/** Returns the delay until a waiting message is claimed again. It grows with the age of the pause; up to half is added at random. */
export function pauseRetryMs(ageMs: number): number {
  return waitMs(ageMs) * (1 + Math.random() / 2);
}

function waitMs(ageMs: number): number {
  return Math.min(MAX_RETRY_MS, Math.max(MIN_RETRY_MS, ageMs / 4));
}

/** The error of a message whose account was paused for too long, as a sentence. */
export function accountRefusedError(reason: string, retryForMs: number): string {
  const hours = Math.round(retryForMs / 360_000) / 10;
  return `${reason} Given up after ${hours} hours.`;
}
