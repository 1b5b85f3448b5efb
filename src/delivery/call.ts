import { performance } from 'node:perf_hooks';
import type { Logger } from 'pino';
import type { SendOutcome } from '../domain/email/retry.ts';
import { awaitAll } from '../lib/await-all.ts';
import type { ChatOutcome } from '../providers/chat-provider.ts';
import { recordHandOvers } from '../store/emails/attempt-workers.ts';
import { type AttemptEnding, type AttemptOutcome, endAttempts } from '../store/emails/attempts.ts';
import { gather } from '../store/postgres/gather.ts';
import { isUnreachable, type Pool } from '../store/postgres/pool.ts';
import { messagesSent, type MessageKind, tally } from '../telemetry/topics.ts';
import type {
  AgainResult,
  Answer,
  AttemptRecorder,
  CallResult,
  Channel,
  ChannelTypes,
  ClaimedMessage,
  DeliveryDeps,
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

/** The answer instead of a call whose claim has expired. */
export const CLAIM_EXPIRED = { kind: 'busy', detail: 'The worker was too slow to send it.' } as const;

/** A result that cannot be recorded is retried for this long. The timeouts of the activities allow for it. */
const RECORD_DEADLINE_MS = 600_000;
/** Recording a hand-over is retried for this long. It must end before a provider gives up waiting for the last bytes. */
const HAND_OVER_DEADLINE_MS = 20_000;
const MAX_GATHERED_HAND_OVERS = 500;

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

/** Makes one provider call. While it is under way, its answers are recorded and applied every RECORD_INTERVAL_MS. */
export async function makeCall<T extends ChannelTypes>(
  deps: DeliveryDeps,
  channel: Channel<T>,
  messages: readonly T['claimed'][],
  onResults: OnResults,
): Promise<CallResult[]> {
  const all: T['answer'][] = [];
  const unrecorded: T['answer'][] = [];
  const recordings: Promise<CallResult[]>[] = [];
  const record = (): void => {
    const answers = unrecorded.splice(0);
    if (answers.length === 0) return;
    const recording = recordAnswers(deps, channel, answers).then((results) => {
      onResults(answers.length);
      return results;
    });
    recording.catch(() => undefined);
    recordings.push(recording);
  };
  const timer = setInterval(record, RECORD_INTERVAL_MS);
  try {
    await channel.call(messages, (answer) => {
      all.push(answer);
      unrecorded.push(answer);
    });
  } finally {
    clearInterval(timer);
    record();
  }
  const results = (await awaitAll(recordings)).flat();
  logCall(deps.log, channel.kind, all);
  return results;
}

/** The outcome of an attempt for each kind of answer of a provider. */
export const ATTEMPT_OUTCOMES: { readonly [K in (SendOutcome | ChatOutcome)['kind']]: AttemptOutcome } = {
  sent: 'sent',
  refused: 'refused',
  bounced: 'refused',
  rejected: 'refused',
  busy: 'again',
  account: 'account',
  unknown: 'unknown',
};

/** Commits the outcomes of attempts in a statement of their own, then applies them to the messages. */
async function recordAnswers<T extends ChannelTypes>(
  deps: DeliveryDeps,
  channel: Channel<T>,
  answers: readonly T['answer'][],
): Promise<CallResult[]> {
  await deps.recorder.record(answers.map(({ ending }) => ending));
  await deps.pauses.record(answers.flatMap(({ accounts }) => accounts));
  const secondsAfterDue = answers
    .filter(({ kind }) => kind === 'sent')
    .map(({ message }) => (message.overdueMs + performance.now() - message.claimedAt) / 1_000);
  messagesSent.publish({ kind: channel.kind, secondsAfterDue });
  try {
    return await persist(() => channel.apply(answers), APPLY_DEADLINE_MS);
  } catch (error) {
    if (!isUnreachable(error)) throw error;
    deps.log.warn({ err: error, messages: answers.length }, 'could not apply recorded answers');
    return answers.map(({ message: { id } }) => ({ id, state: 'again', reason: UNAPPLIED_REASON }));
  }
}

/** The result of a message that its provider did not accept, and may accept later. */
export function retryResult(
  { maxIntervalMs }: DeliveryDeps,
  { id, failures: failuresBefore }: Pick<ClaimedMessage, 'id' | 'failures'>,
  outcome: { readonly kind: 'busy' | 'account' | 'unknown'; readonly detail: string; readonly afterMs?: number },
): AgainResult {
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
