import { performance } from 'node:perf_hooks';
import type { Logger } from 'pino';
import type { SendOutcome } from '../domain/email/retry.ts';
import { awaitAll } from '../lib/await-all.ts';
import type { ChatOutcome } from '../providers/chat-provider.ts';
import { recordHandOvers } from '../store/emails/attempt-workers.ts';
import { type AttemptEnding, endAttempts, NO_CHANGES } from '../store/emails/attempts.ts';
import { gather } from '../store/postgres/gather.ts';
import { isUnreachable, type Pool } from '../store/postgres/pool.ts';
import { messagesSent, type MessageKind, tally } from '../telemetry/topics.ts';
import {
  type AgainResult,
  type Answer,
  type AttemptRecorder,
  type CallResult,
  type Channel,
  type ChannelTypes,
  type ClaimedMessage,
  type DeliveryDeps,
  type MemberResult,
  OPEN_CALL_CHECK_INTERVAL_MS,
  postponed,
} from './contract.ts';
import { KIND_NAMES, logId } from './log-names.ts';
import { PAUSE_RETRY_MS } from './pauses.ts';
import { persist } from './persist.ts';
import type { WorkerLease } from './worker-lease.ts';

/** Called with the number of messages whose results have become complete. */
export type OnResults = (count: number) => void;

/** The reason for a retry of a message whose recorded answer is not applied. */
export const UNAPPLIED_REASON = 'The provider has answered; its answer is recorded and will be applied.';

/** Answers of one call that arrive within this time are recorded by one statement. */
const RECORD_INTERVAL_MS = 100;
/** Applying a recorded answer is retried for this long; after that the next claim applies it. */
const APPLY_DEADLINE_MS = 10_000;
/** A worker that was suspended for longer between claim and call does not make the call. */
const CLAIM_EXPIRY_MS = 20_000;

/**
 * Returns true if a claim is too old for its call. The monotonic clock stops while the host is suspended, and the wall clock
 * may be set back, so the larger of both ages counts.
 */
export function isClaimExpired({
  claimedAt,
  claimedAtUnixMs,
}: Pick<ClaimedMessage, 'claimedAt' | 'claimedAtUnixMs'>): boolean {
  return Math.max(performance.now() - claimedAt, Date.now() - claimedAtUnixMs) > CLAIM_EXPIRY_MS;
}

/** The reasons of messages for which no call was made. */
export const CLAIM_EXPIRED = 'The worker was too slow to send it.';
export const NO_CONNECTION = 'It waits for a connection to the provider.';

/** A result that cannot be recorded is retried for this long. The timeouts of the activities allow for it. */
const RECORD_DEADLINE_MS = 600_000;
/** Recording a hand-over is retried for this long. It must end before a provider gives up waiting for the last bytes. */
const HAND_OVER_DEADLINE_MS = 20_000;
const MAX_GATHERED_HAND_OVERS = 500;
/** The hand-overs of a call come within a few milliseconds of each other; one statement for them costs less. */
const HAND_OVER_DELAY_MS = 2;

/**
 * @param pool a separate pool: the connections of the shared one may all be waiting for a lock
 * @param lease missing only in tests
 */
export function makeAttemptRecorder(
  pool: Pool,
  log: Logger,
  lease?: Pick<WorkerLease, 'worker' | 'isHeld'>,
): AttemptRecorder {
  const blocked = new Set<readonly AttemptEnding[]>();
  const recordHandOver = gather(
    (attempts: readonly Pick<AttemptEnding, 'message_id' | 'n'>[]) =>
      persist(() => recordHandOvers(pool, attempts), HAND_OVER_DEADLINE_MS),
    MAX_GATHERED_HAND_OVERS,
    undefined,
    HAND_OVER_DELAY_MS,
  );
  return {
    worker: lease?.worker ?? null,
    async handOver(attempt) {
      if (!(await recordHandOver(attempt))) throw new Error('another worker has ended the attempt');
    },
    async record(endings) {
      const onFailure = (error: unknown): void => {
        if (blocked.size === 0) log.error({ err: error }, 'recording of results blocked, sending paused');
        blocked.add(endings);
      };
      try {
        await persist(() => endAttempts(pool, endings), RECORD_DEADLINE_MS, onFailure);
        if (blocked.delete(endings) && blocked.size === 0) log.info('recording of results resumed');
      } finally {
        blocked.delete(endings);
      }
    },
    isBlocked: () => blocked.size > 0 || lease?.isHeld() === false,
  };
}

/** The results of a provider call for the deliveries of its messages. */
interface DeliveredCall {
  readonly results: CallResult[];
  /** Fulfilled once the answers of late messages are recorded and applied too. */
  readonly ended: Promise<unknown>;
}

/**
 * Makes one provider call. While it is under way, its answers are recorded and applied every RECORD_INTERVAL_MS. It is left under way
 * once only late messages are unanswered. Their deliveries look for the answers every OPEN_CALL_CHECK_INTERVAL_MS.
 */
export async function makeCall<T extends ChannelTypes>(
  deps: DeliveryDeps,
  channel: Channel<T>,
  messages: readonly T['claimed'][],
  onResults: OnResults,
): Promise<DeliveredCall> {
  const waitedFor = new Set(messages.map(({ id }) => id));
  const late: MemberResult[] = [];
  const isLate = ({ message }: Answer): boolean => late.some(({ id }) => id === message.id);
  const recording = startRecording(deps, channel, isLate, (results) => onResults(stopWaiting(results)));
  let leave = (): void => undefined;
  const left = new Promise<void>((resolve) => (leave = resolve));
  const stopWaiting = (results: readonly { readonly id: string }[]): number => {
    const count = results.filter(({ id }) => waitedFor.delete(id)).length;
    if (waitedFor.size === 0) leave();
    return count;
  };
  const onLate = (message: T['claimed']): void => {
    if (!waitedFor.has(message.id)) return;
    late.push(lateResult(channel, message));
    onResults(stopWaiting([message]));
  };
  const ended = channel.call(messages, recording.add, onLate).finally(recording.end).then(recording.finish);
  await Promise.race([ended, left]);
  if (late.length === 0) return { results: await ended, ended };
  const applied = ended
    .then(() => channel.onLateAnswers?.(late.map(({ id }) => id)))
    .catch((error: unknown) => deps.log.error({ err: error }, 'late answers of a provider not applied'));
  deps.line.keep(applied);
  const results = await recording.results();
  const isAnswered = new Set(results.map(({ id }) => id));
  return { results: [...results, ...late.filter(({ id }) => !isAnswered.has(id))], ended };
}

/** The result of a message whose provider has not answered for long. */
function lateResult<T extends ChannelTypes>(channel: Channel<T>, message: T['claimed']): AgainResult {
  const { id, provider, claimedAt } = message;
  const ageMs = performance.now() - claimedAt;
  const overInMs = channel.callIsOverInMs({ outcome: null, provider: provider.name, ageMs });
  const waitMs = Math.min(overInMs, OPEN_CALL_CHECK_INTERVAL_MS);
  return { ...postponed(id, 'The provider has not answered yet.', waitMs), alone: true };
}

/** Records and applies the answers of one call together, every RECORD_INTERVAL_MS until `end`. */
function startRecording<T extends ChannelTypes>(
  deps: DeliveryDeps,
  channel: Channel<T>,
  isLate: (answer: Answer) => boolean,
  onRecorded: (results: readonly CallResult[]) => void,
) {
  const all: T['answer'][] = [];
  const unrecorded: T['answer'][] = [];
  const recordings: Promise<CallResult[]>[] = [];
  const record = (): void => {
    const answers = unrecorded.splice(0);
    if (answers.length === 0) return;
    const recording = recordAnswers(deps, channel, answers, isLate).then((results) => {
      onRecorded(results);
      return results;
    });
    recording.catch(() => undefined);
    recordings.push(recording);
  };
  const results = async (): Promise<CallResult[]> => (await awaitAll(recordings)).flat();
  const timer = setInterval(record, RECORD_INTERVAL_MS);
  return {
    add: (answer: T['answer']): void => {
      all.push(answer);
      unrecorded.push(answer);
    },
    end: (): void => {
      clearInterval(timer);
      record();
    },
    results,
    finish: async (): Promise<CallResult[]> => {
      const finished = await results();
      logCall(deps.log, channel.kind, all);
      return finished;
    },
  };
}

/** The outcome of an attempt for each kind of answer of a provider. */
export const ATTEMPT_OUTCOMES: { readonly [K in (SendOutcome | ChatOutcome)['kind']]: AttemptEnding['outcome'] } = {
  sent: 'sent',
  refused: 'refused',
  bounced: 'refused',
  rejected: 'refused',
  busy: 'again',
  postponed: 'none',
  account: 'account',
  unknown: 'unknown',
};

/**
 * Commits the outcomes of attempts in a statement of their own, then applies them to the messages. A late answer after which the message
 * is attempted again is left unapplied: the next claim applies it, and its result makes the workflow wait as the retry policy states.
 */
async function recordAnswers<T extends ChannelTypes>(
  deps: DeliveryDeps,
  channel: Channel<T>,
  answers: readonly T['answer'][],
  isLate: (answer: Answer) => boolean,
): Promise<CallResult[]> {
  const isLeft = (answer: Answer): boolean => isLate(answer) && isAttemptedAgain(answer.ending);
  await deps.recorder.record(
    answers.map((answer) => ({ ...(isLeft(answer) && { changes: NO_CHANGES }), ...answer.ending })),
  );
  await deps.pauses.record(answers.flatMap(({ accounts }) => accounts));
  const secondsAfterDue = answers
    .filter(({ kind }) => kind === 'sent')
    .map(({ message }) => (message.overdueMs + performance.now() - message.claimedAt) / 1_000);
  messagesSent.publish({ kind: channel.kind, secondsAfterDue });
  try {
    const applicable = answers.filter((answer) => !isLeft(answer));
    return applicable.length === 0 ? [] : await persist(() => channel.apply(applicable), APPLY_DEADLINE_MS);
  } catch (error) {
    if (!isUnreachable(error)) throw error;
    deps.log.warn({ err: error, messages: answers.length }, 'could not apply recorded answers');
    return answers.map(({ message: { id } }) => ({ id, state: 'again', reason: UNAPPLIED_REASON }));
  }
}

function isAttemptedAgain({ outcome }: AttemptEnding): boolean {
  return outcome === 'again' || outcome === 'account' || outcome === 'unknown';
}

/** The result of a message that its provider did not accept, and may accept later. */
export function retryResult(
  { maxIntervalMs }: DeliveryDeps,
  { id, failures: failuresBefore }: Pick<ClaimedMessage, 'id' | 'failures'>,
  outcome:
    | { readonly kind: 'busy' | 'account' | 'unknown'; readonly detail: string; readonly afterMs?: number }
    | { readonly kind: 'postponed'; readonly detail: string; readonly afterMs: number },
): AgainResult {
  if (outcome.kind === 'postponed') return postponed(id, outcome.detail, outcome.afterMs);
  const isAboutAccount = outcome.kind === 'account';
  const afterMs = isAboutAccount ? Math.min(maxIntervalMs, PAUSE_RETRY_MS) : outcome.afterMs;
  const failures = isAboutAccount ? failuresBefore : failuresBefore + 1;
  return { id, state: 'again', reason: outcome.detail, failures, ...(afterMs !== undefined && { afterMs }) };
}

/** Logs one line per call with the number of messages per outcome; with several messages, one line each at level debug. */
function logCall(log: Logger, kind: MessageKind, answers: readonly Answer[]): void {
  const [first] = answers as [Answer];
  if (answers.length === 1) {
    logAnswer(log, kind, 'info', first);
    return;
  }
  const kinds = answers.map((answer) => answer.kind);
  const line = {
    call: first.message.call,
    provider: first.message.provider.name,
    [kind === 'email' ? 'emails' : 'messages']: answers.length,
    outcomes: Object.fromEntries(tally(kinds)),
    ms: Math.round(performance.now() - first.message.claimedAt),
  };
  if (kinds.includes('account')) log.error(line, 'provider refused our account');
  else log.info(line, `${KIND_NAMES[kind]}s handed to a provider`);
  if (!log.isLevelEnabled('debug')) return;
  for (const answer of answers) logAnswer(log, kind, 'debug', answer);
}

function logAnswer(log: Logger, kind: MessageKind, level: 'info' | 'debug', answer: Answer): void {
  const { id, orgId, provider, call, n, claimedAt } = answer.message;
  const line = {
    ...logId(kind, id),
    org: orgId,
    provider: provider.name,
    call,
    attempt: n,
    copies: answer.copies,
    outcome: answer.kind,
    code: answer.code,
    detail: answer.detail,
    ms: Math.round(performance.now() - claimedAt),
  };
  if (answer.kind === 'account' && level === 'info') log.error(line, 'provider refused our account');
  else log[level](line, `${KIND_NAMES[kind]} handed to a provider`);
}
