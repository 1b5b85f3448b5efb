import type { Logger } from 'pino';
import type { EmailStatus } from '../domain/email/email.ts';
import type { MessageStatus } from '../domain/messages/message.ts';
import type { Attempt, AttemptEnding } from '../store/emails/attempts.ts';
import type { Db, Pool } from '../store/postgres/pool.ts';
import type { MessageKind } from '../telemetry/topics.ts';
import type { ProviderLine } from './line.ts';
import { type AccountAnswer, pauseRetryMs, type ProviderPauses } from './pauses.ts';

/** The dependencies of deliveries on every channel. */
export interface DeliveryDeps {
  readonly pool: Pool;
  /** The minimum time between the first attempt and the second; a provider may request a longer one. */
  readonly initialIntervalMs: number;
  /** The longest backoff between two attempts; also limits the delay after a provider refused our account. */
  readonly maxIntervalMs: number;
  /** Applies to an ambiguous call whose provider cannot be queried. */
  readonly ambiguousSend: 'retry' | 'fail';
  /** The maximum number of repeated sends of one message after ambiguous calls. */
  readonly ambiguousSendMaxRepeats: number;
  /** The time after a provider's first "not found" from which a second one confirms it: its search may lag. */
  readonly confirmNotFoundAfterMs: number;
  /** The time without a session of its worker after which a call to an SMTP server counts as ended. */
  readonly goneWorkerWaitMs: number;
  /** Pauses of provider accounts. */
  readonly pauses: ProviderPauses;
  /** A message that waits for a paused account fails after this time. */
  readonly accountRetryForMs: number;
  readonly recorder: AttemptRecorder;
  /** Limits the concurrent calls of this process. */
  readonly line: ProviderLine;
  /** Aborted at shutdown. The worker then claims nothing more but still records results. */
  readonly stopping: Pick<AbortSignal, 'aborted'>;
  readonly log: Logger;
}

export type DeliveryStatus = EmailStatus | MessageStatus;

/** A message that is due according to its workflow. */
export interface Member {
  readonly id: string;
  /** The `schedule_version` that the workflow's timer was set for. */
  readonly version: number;
  /** The id of the calling workflow if that is a group; the email may have been detached from it. */
  readonly workflowId?: string;
}

/** The result of a delivery for the workflow that delivers the message. */
export type MemberResult =
  /** It has its final status. `provider` is set if a provider was called. */
  | { readonly id: string; readonly state: 'ended'; readonly status: DeliveryStatus; readonly provider?: string }
  /** It was rescheduled, or our timer fired early: it is due in `inMs` by the database's clock. */
  | {
      readonly id: string;
      readonly state: 'waiting';
      readonly version: number;
      readonly dueAt: string;
      readonly inMs: number;
    }
  | AgainResult;

/** The message has no final status yet and is to be attempted again. */
export interface AgainResult {
  readonly id: string;
  readonly state: 'again';
  /** A sentence for the log and for Temporal. */
  readonly reason: string;
  /** The minimum time until the next attempt. */
  readonly afterMs?: number;
  /** True if the message should be retried outside its group. */
  readonly alone?: boolean;
  /** True if no attempt was made, for a reason of ours, or if more copies follow: the next attempt comes without backoff. */
  readonly postponed?: boolean;
  /** Set after a provider call: the failed attempts including this one, which limit backoff and attempts. See `Attempt.failures`. */
  readonly failures?: number;
  /** Set after a failed look-up of an ambiguous attempt: its look-ups including this one. */
  readonly checks?: number;
}

/**
 * The result of a provider call for a message. `partial`: all copies of the call were accepted, or as many recipients as the server
 * takes at a time, and others are left.
 */
export type CallResult = MemberResult | { readonly id: string; readonly state: 'partial' };

/** A message that no other worker may send now; its attempt is recorded. */
export interface ClaimedMessage {
  readonly id: string;
  readonly orgId: string;
  readonly provider: { readonly name: string };
  readonly n: number;
  /** The number of failed attempts before this one: see `Attempt.failures`. */
  readonly failures: number;
  /** Messages of one provider call have the same id. */
  readonly call: string;
  /** Milliseconds of the monotonic clock. */
  readonly claimedAt: number;
  readonly claimedAtUnixMs: number;
  /** The time from its due time to its claim. */
  readonly overdueMs: number;
}

/** A message whose last attempt must be reconciled or applied before it is sent again. */
export interface AttemptedMessage {
  readonly member: Member;
  readonly attempt: Attempt;
}

/** The result of a claim for one member. `held` needs something of its channel before it can be claimed. */
export type Claim<T extends ChannelTypes> =
  | { readonly kind: 'ready'; readonly message: T['claimed'] }
  /** Its last attempt must be looked up at the provider. */
  | { readonly kind: 'ambiguous'; readonly message: T['attempted'] }
  /** The provider's answer is recorded but not applied. */
  | { readonly kind: 'unapplied'; readonly message: T['attempted'] }
  | { readonly kind: 'held'; readonly message: T['held'] }
  | { readonly kind: 'done'; readonly result: MemberResult };

/** The provider's answer about one message. */
export interface Answer {
  readonly message: ClaimedMessage;
  readonly kind: 'sent' | 'bounced' | 'rejected' | 'refused' | 'busy' | 'postponed' | 'account' | 'unknown';
  /** A sentence, and the provider's own code, as they may be logged. */
  readonly detail?: string;
  readonly code?: string;
  /** The number of copies that it is about, if there are several. */
  readonly copies?: number;
  /** Contains everything that is needed to apply the answer later. */
  readonly ending: AttemptEnding;
  /** The state of our account that the answer reveals. */
  readonly accounts: readonly AccountAnswer[];
}

/** The messages of a channel in each state of a delivery. */
export interface ChannelTypes {
  readonly claimed: ClaimedMessage;
  readonly attempted: AttemptedMessage;
  readonly held: unknown;
  readonly answer: Answer;
}

/** The part of a delivery that depends on the channel: tables, transitions, recipients and providers. */
export interface Channel<T extends ChannelTypes> extends ChannelEndings {
  /** Claims the members that may be sent now. After its commit their attempts are recorded, and none can be rescheduled. */
  claim(members: readonly Member[]): Promise<Claim<T>[]>;
  /**
   * Sends messages in one provider call.
   * @param onAnswer called for each message as soon as its answer is known
   * @param onLate called for a message whose delivery should no longer wait for the answer
   */
  call(
    messages: readonly T['claimed'][],
    onAnswer: (answer: T['answer']) => void,
    onLate: (message: T['claimed']) => void,
  ): Promise<void>;
  /** Applies recorded answers. Idempotent. @returns one result for each, in order */
  apply(answers: readonly T['answer'][]): Promise<CallResult[]>;
  /** Called after late answers were applied. */
  onLateAnswers?(ids: readonly string[]): Promise<void>;
  /** Applies answers that were recorded by another worker, without a provider call. */
  applyRecorded(messages: readonly T['attempted'][]): Promise<CallResult[]>;
  /**
   * Returns a function that asks the provider which messages of one call it has; undefined if the provider cannot be asked. The
   * function resolves to the provider's ids by message id (by `copyKey` for copies), and rejects if the provider is unreachable.
   */
  lookUp(messages: readonly T['attempted'][]): (() => Promise<ReadonlyMap<string, string>>) | undefined;
  /** Records the messages in `found`, the result of a look-up. @returns the messages of which no copy is left to be sent */
  recordFound(
    client: Db,
    messages: readonly T['attempted'][],
    found: ReadonlyMap<string, string>,
  ): Promise<readonly T['attempted'][]>;
}

/** How messages of a channel end without a provider call. */
export interface ChannelEndings {
  readonly kind: MessageKind;
  /** Returns true if the provider of an attempt can be asked about it. */
  canBeLookedUp(client: Db, attempt: Attempt): Promise<boolean>;
  /**
   * Milliseconds until a call without a recorded outcome counts as ended.
   * @param workerGoneForMs time since its worker was first found to be gone; undefined while it lives, or if it is not known
   */
  callIsOverInMs(attempt: Pick<Attempt, 'outcome' | 'provider' | 'ageMs'>, workerGoneForMs?: number): number;
  /** Fails messages. @returns their statuses; those with copies left are missing */
  fail(client: Db, failed: readonly Failure[]): Promise<Map<string, DeliveryStatus>>;
  /** Locks messages of one workflow. @returns their statuses: `queued` while something is to be sent */
  lockStatuses(client: Db, ids: readonly string[], workflowId: string): Promise<Map<string, DeliveryStatus>>;
  /** Returns the messages whose organization is suspended. */
  findSuspended(client: Db, ids: readonly string[]): Promise<ReadonlySet<string>>;
  /** Postpones upkeep's next check of messages until ten minutes after a wait of `waitMs`. */
  postponeCheck(ids: readonly string[], waitMs: number): Promise<void>;
  /** Cancels locked messages that are still scheduled. @returns the ids of those */
  cancel(client: Db, ids: readonly string[]): Promise<readonly string[]>;
}

/** A message that ends without being sent. `error` is a sentence for customers. */
export interface Failure {
  readonly id: string;
  readonly error: string;
  /** The provider's own code. */
  readonly code?: string;
  /** The call that it failed in, if only the copies of that call fail. */
  readonly call?: string;
  /** Why it fails for a recipient that was deferred, as a sentence that follows the server's answer about that recipient. */
  readonly afterDeferral?: string;
}

/** Records the progress and the results of provider calls. */
export interface AttemptRecorder {
  /** The worker that begins attempts; see `WorkerLease`. */
  readonly worker: number | null;
  /**
   * Resolves when it is committed that the last bytes of a message are about to leave. Rejects if they may not leave: another worker
   * has ended the attempt, or Postgres is unreachable.
   */
  readonly handOver: (attempt: Pick<AttemptEnding, 'message_id' | 'n'>) => Promise<void>;
  /** Commits only the ends of attempts, so that no lock on another table can delay it. Retries for ten minutes. */
  readonly record: (endings: readonly AttemptEnding[]) => Promise<void>;
  /** True while a result could not be recorded or the worker has no lease. Nothing may be claimed meanwhile. */
  readonly isBlocked: () => boolean;
}

/** The fields of a locked message that decide whether it may be claimed. */
interface Claimable {
  readonly id: string;
  readonly status: DeliveryStatus;
  readonly schedule_version: number;
  readonly scheduled_at: string | null;
  /** By the database's clock; 0 when it is due. */
  readonly dueInMs: number;
  readonly provider: string | null;
  /** The workflow that delivers it. */
  readonly workflow_id: string;
  /** True for a marketing email with unsent copies, and for an email with deferred recipients. */
  readonly copies_left: boolean;
}

/** A message whose call may be under way, or whose worker may have ended, is looked at this often. */
export const OPEN_CALL_CHECK_INTERVAL_MS = 20_000;

/** Returns the result of a message that is attempted again after `afterMs`, without backoff: see `postponed` of `AgainResult`. */
export function postponed(id: string, reason: string, afterMs: number): AgainResult {
  return { id, state: 'again', reason, afterMs, postponed: true };
}

/** Bounds of the delay of a message that waited for something of ours in vain. */
const MIN_UNCALLED_RETRY_MS = 2_000;
const MAX_UNCALLED_RETRY_MS = 60_000;

/**
 * Returns the outcome of a message for which no call was made, for a reason of ours. It uses no attempt. Up to as much is added to its
 * delay at random, so that not all retries coincide.
 * @param stalledForMs the time for which the reason has lasted
 */
export function uncalled(detail: string, stalledForMs = 0) {
  const delayMs = Math.min(MAX_UNCALLED_RETRY_MS, Math.max(MIN_UNCALLED_RETRY_MS, stalledForMs));
  return { kind: 'postponed', detail, afterMs: delayMs * (1 + Math.random()) } as const;
}

/** The result for a message of a suspended organization. It uses no attempt. */
export function suspendedResult(id: string, suspendedForMs: number): AgainResult {
  return postponed(id, 'Its organization is suspended.', pauseRetryMs(suspendedForMs));
}

/** Returns the result of a claim whose message is not to be sent now. */
export function done(result: MemberResult): { readonly kind: 'done'; readonly result: MemberResult } {
  return { kind: 'done', result };
}

/** Returns true if the member's workflow is the one that delivers the message. */
export function isDeliveredBy(
  { workflow_id }: Pick<Claimable, 'workflow_id'>,
  { id, workflowId = id }: Member,
): boolean {
  return workflow_id === workflowId;
}

/** The result of a message that may not be claimed for this member now; undefined if it may. */
export function unclaimableResult(message: Claimable, member: Member): MemberResult | undefined {
  const { status, schedule_version, scheduled_at, dueInMs, provider, copies_left } = message;
  const { id, version } = member;
  if (!isDeliveredBy(message, member)) return { id, state: 'ended', status };
  if (status === 'scheduled') {
    if (schedule_version === version && dueInMs === 0) return undefined;
    return { id, state: 'waiting', version: schedule_version, dueAt: scheduled_at as string, inMs: dueInMs };
  }
  // This version was claimed before: by an earlier attempt, or by another run of its workflow.
  if ((status === 'queued' || copies_left) && schedule_version === version) return undefined;
  return { id, state: 'ended', status, ...(provider !== null && { provider }) };
}
