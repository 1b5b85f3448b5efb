import { performance } from 'node:perf_hooks';
import type { Logger } from 'pino';
import { maskAddresses } from '../../lib/mask.ts';
import type { SendOutcome } from '../../domain/email/retry.ts';
import { isUnreachable } from '../../store/postgres/pool.ts';
import { handedOver, tally } from '../../telemetry/topics.ts';
import { type ClaimedEmail, isClaimExpired } from './claim.ts';
import type { CallResult, EmailDeps } from './contract.ts';
import { type AccountAnswer, sendersOf } from '../pauses.ts';
import { persist } from '../persist.ts';
import { toMessage } from './recipients.ts';
import { applyOutcomes, endingOf, outcomeOf, type Sent } from './record.ts';
import { UNAPPLIED } from './unapplied.ts';

/** A longer text of a provider is cut to so many UTF-16 units. */
export const MAX_DETAIL_LENGTH = 2_000;
/** Outcomes of one call that arrive within this time are recorded by one statement. */
const RECORD_INTERVAL_MS = 100;
/** Applying a recorded answer is retried for this long; after that the next claim applies it. */
export const APPLY_DEADLINE_MS = 10_000;

/**
 * Makes one provider call and records the outcome of each email as soon as it is known.
 * @param onResults called with the number of emails whose results have become complete
 */
export async function makeCall(
  deps: EmailDeps,
  emails: readonly ClaimedEmail[],
  onResults: (count: number) => void,
): Promise<CallResult[]> {
  const all: Sent[] = [];
  let unrecorded: Sent[] = [];
  const recordings: Promise<CallResult[]>[] = [];
  const record = (): void => {
    if (unrecorded.length === 0) return;
    const sent = unrecorded;
    unrecorded = [];
    const recording = recordOutcomes(deps, sent).then((results) => {
      onResults(sent.length);
      return results;
    });
    recording.catch(() => undefined);
    recordings.push(recording);
  };
  const timer = setInterval(record, RECORD_INTERVAL_MS);
  try {
    await callProvider(emails, (sent) => {
      all.push(sent);
      unrecorded.push(sent);
    });
  } finally {
    clearInterval(timer);
    record();
  }
  await Promise.allSettled(recordings);
  const results = (await Promise.all(recordings)).flat();
  logCall(deps.log, all);
  return results;
}

/** Commits the outcomes of attempts in a statement of their own, then applies them to the emails. */
async function recordOutcomes(deps: EmailDeps, sent: readonly Sent[]): Promise<CallResult[]> {
  await deps.recorder.record(sent.map(endingOf));
  await deps.pauses.note(sent.flatMap(accountAnswerOf));
  const taken = sent.filter(({ outcomes }) => outcomeOf(outcomes).kind === 'sent');
  handedOver.publish({ kind: 'email', secondsAfterDue: taken.map(({ email }) => secondsAfterDue(email)) });
  let results: CallResult[] = [];
  try {
    await persist(async () => {
      results = await applyOutcomes(deps, sent);
    }, APPLY_DEADLINE_MS);
  } catch (error) {
    if (!isUnreachable(error)) throw error;
    deps.log.warn({ err: error, emails: sent.length }, 'could not apply recorded answers');
    return sent.map(({ email: { id } }) => ({ id, state: 'again', reason: UNAPPLIED }));
  }
  return results;
}

/** Derives the state of our account from an email's outcome. Other messages may fail with the reason, so addresses are masked. */
function accountAnswerOf({ email, outcomes }: Sent): AccountAnswer[] {
  const outcome = outcomeOf(outcomes);
  const { provider, copies } = email;
  const [copy] = copies;
  const answer = { provider: provider.name, senders: copy ? sendersOf(provider, copy) : [] };
  if (outcome.kind === 'sent') return [answer];
  if (outcome.kind !== 'account') return [];
  const [domain = '', stream = ''] = answer.senders;
  const sender = outcome.scope === 'sender' ? domain : outcome.scope === 'stream' ? stream : '';
  return [{ ...answer, refusal: { reason: maskAddresses(outcome.detail), sender } }];
}

/** @param onSent called for each email once the outcomes of all its copies are known */
async function callProvider(emails: readonly ClaimedEmail[], onSent: (sent: Sent) => void): Promise<void> {
  const [first] = emails as [ClaimedEmail];
  const copies = emails.flatMap((email) => email.copies);
  const owners = emails.flatMap((email) => email.copies.map((_, index) => ({ email, index })));
  const outcomesOf = new Map(emails.map((email) => [email, new Map<number, SendOutcome>()]));
  const addOutcome = (position: number, outcome: SendOutcome): void => {
    const owner = owners[position];
    const outcomes = owner && outcomesOf.get(owner.email);
    if (!outcomes || outcomes.has(owner.index)) return;
    outcomes.set(owner.index, storable(outcome));
    if (outcomes.size < owner.email.copies.length) return;
    const inOrder = owner.email.copies.map((_, index) => outcomes.get(index) as SendOutcome);
    onSent({ email: owner.email, outcomes: inOrder as [SendOutcome, ...SendOutcome[]] });
  };
  if (isClaimExpired(first)) {
    copies.forEach((_, position) =>
      addOutcome(position, { kind: 'busy', detail: 'The worker was too slow to send it.' }),
    );
    return;
  }
  const outcomes = await first.provider.send(copies.map(toMessage), first.call, addOutcome);
  outcomes.forEach((outcome, position) => addOutcome(position, outcome));
}

/** Bounds a server's text and removes NUL, which Postgres rejects: the outcome could otherwise never be recorded. */
function storable(outcome: SendOutcome): SendOutcome {
  const clean = <T extends { readonly detail: string }>(entry: T): T => {
    return { ...entry, detail: entry.detail.replaceAll('\0', '').slice(0, MAX_DETAIL_LENGTH) };
  };
  const cleaned = 'detail' in outcome ? clean(outcome) : outcome;
  return 'refused' in cleaned ? { ...cleaned, refused: cleaned.refused.map(clean) } : cleaned;
}

function secondsAfterDue({ overdueMs, claimedAt }: ClaimedEmail): number {
  return (overdueMs + performance.now() - claimedAt) / 1_000;
}

/** Logs one line per call with the number of emails per outcome; with several emails, one line each at level debug. */
function logCall(log: Logger, sent: readonly Sent[]): void {
  const [first] = sent as [Sent];
  if (sent.length === 1) {
    logOutcome(log, 'info', first);
    return;
  }
  const kinds = sent.map(({ outcomes }) => outcomeOf(outcomes).kind);
  const { provider, call, claimedAt } = first.email;
  const line = {
    call,
    provider: provider.name,
    emails: sent.length,
    outcomes: Object.fromEntries(tally(kinds)),
    ms: Math.round(performance.now() - claimedAt),
  };
  if (kinds.includes('account')) log.error(line, 'provider refused our account');
  else log.info(line, 'emails handed to a provider');
  for (const entry of sent) logOutcome(log, 'debug', entry);
}

function logOutcome(log: Logger, level: 'info' | 'debug', { email, outcomes }: Sent): void {
  const outcome = outcomeOf(outcomes);
  const line = {
    email: email.id,
    org: email.orgId,
    provider: email.provider.name,
    call: email.call,
    attempt: email.n,
    ...(outcomes.length > 1 && { copies: outcomes.length }),
    outcome: outcome.kind,
    detail: 'detail' in outcome ? maskAddresses(outcome.detail) : undefined,
    ms: Math.round(performance.now() - email.claimedAt),
  };
  if (outcome.kind === 'account' && level === 'info') log.error(line, 'provider refused our account');
  else log[level](line, 'email handed to a provider');
}
