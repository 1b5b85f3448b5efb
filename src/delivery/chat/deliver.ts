import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { ChatProviderName, ChatStatus } from '../../domain/chat/chat.ts';
import { newId } from '../../domain/ids.ts';
import { maskNumbers } from '../../lib/mask.ts';
import { verdict } from '../../domain/email/retry.ts';
import { projectChat } from '../../projection/chat.ts';
import type { ChatOutcome } from '../../providers/chat-provider.ts';
import {
  type Attempt,
  type AttemptEnding,
  type AttemptOutcome,
  beginAttempts,
  lastAttempts,
} from '../../store/emails/attempts.ts';
import { lockChat, lockChatStatuses, type StoredChat } from '../../store/chat/attempts.ts';
import { type Db, isUnreachable, transaction } from '../../store/postgres/pool.ts';
import { handedOver } from '../../telemetry/topics.ts';
import type { ChatDeps, ChatResult, ClaimedChat } from './contract.ts';
import { reconcileChat } from './reconcile.ts';
import { APPLY_DEADLINE_MS, MAX_DETAIL_LENGTH } from '../email/call.ts';
import { hasFinalOutcome, isClaimExpired, isAmbiguous } from '../email/claim.ts';
import { claimBlocker } from '../email/deliver.ts';
import { type AccountAnswer, judgePaused, makeGate, PAUSE_RETRY_MS, waitForOrganization } from '../pauses.ts';
import { persist } from '../persist.ts';
import { endOfCall } from '../email/reconcile-attempts.ts';
import { UNAPPLIED } from '../email/unapplied.ts';

/** A message whose turn comes within this time waits in memory; otherwise its activity is retried. */
const MAX_TURN_WAIT_MS = 1_000;
/** A longer error code of a provider is cut to so many UTF-16 units. */
const MAX_CODE_LENGTH = 100;

type Claim =
  | { readonly kind: 'ready'; readonly claimed: ClaimedChat }
  | { readonly kind: 'ambiguous'; readonly message: StoredChat; readonly attempt: Attempt }
  /** The provider's answer is recorded but not applied. */
  | { readonly kind: 'unapplied'; readonly answer: Answer }
  /** Its number is at its rate limit. */
  | { readonly kind: 'early'; readonly waitMs: number }
  | { readonly kind: 'over'; readonly result: ChatResult };

/**
 * Claims a message, sends it and records the outcome. Idempotent: an ambiguous call is looked up at the provider before the
 * message is sent again.
 */
export async function deliver(deps: ChatDeps, id: string): Promise<ChatResult> {
  const blocker = claimBlocker(deps);
  if (blocker !== undefined) return { state: 'again', reason: blocker };
  let claim = await claimInTurn(deps, id);
  if (claim.kind === 'ambiguous') {
    const reconciled = await reconcileChat(deps, claim.message, claim.attempt);
    if (reconciled !== 'lost') return reconciled;
    // A message that the provider does not have is claimed again with a new attempt.
    claim = await claimInTurn(deps, id);
  }
  switch (claim.kind) {
    case 'ready':
      return makeCall(deps, claim.claimed);
    case 'over':
      return claim.result;
    case 'early':
      return { state: 'again', reason: 'Its number sends as fast as it may.', afterMs: claim.waitMs };
    case 'unapplied':
      return apply(deps, claim.answer);
    case 'ambiguous':
      return { state: 'again', reason: 'Another worker has just made an attempt.' };
  }
}

async function claimInTurn(deps: ChatDeps, id: string): Promise<Claim> {
  const claim = await tryClaim(deps, id);
  if (claim.kind !== 'early' || claim.waitMs > MAX_TURN_WAIT_MS) return claim;
  await sleep(claim.waitMs);
  return tryClaim(deps, id);
}

/** Claims a message if it may be sent now. The attempt is recorded by the commit. */
async function tryClaim(deps: ChatDeps, id: string): Promise<Claim> {
  const gate = makeGate(await deps.pauses.current());
  return transaction(deps.pool, async (client): Promise<Claim> => {
    const message = await lockChat(client, id);
    if (message?.status !== 'queued') return over(message?.status ?? 'failed');
    const [attempt] = await lastAttempts(client, [id]);
    if (attempt && isAmbiguous(attempt)) return { kind: 'ambiguous', message, attempt };
    if (attempt && hasFinalOutcome(attempt)) {
      return { kind: 'unapplied', answer: { ...attempt, outcome: attempt.outcome === 'sent' ? 'sent' : 'refused' } };
    }
    if (message.suspended_for !== null) return { kind: 'over', result: waitForOrganization(message.suspended_for) };
    const { number } = message;
    if (!number) return fail(client, id, 'The number that it should come from is not connected any more.');
    const provider = deps.providerOf(number);
    const refusal = provider.refusal(message);
    if (refusal !== undefined) return fail(client, id, refusal);

    const pause = await gate(client, provider.name, [number.id]);
    if (pause) {
      const waitedMs = attempt?.account_for ?? Math.min(message.late, pause.ageMs);
      const paused = judgePaused(pause, waitedMs, deps.accountRetryForMs);
      if (paused.kind === 'fail') return fail(client, id, paused.error);
      return { kind: 'over', result: { state: 'again', reason: pause.reason, afterMs: paused.afterMs } };
    }
    const waitMs = deps.pace.reserve(number.id, id);
    if (waitMs > 0) return { kind: 'early', waitMs };
    const n = (attempt?.n ?? 0) + 1;
    const call = newId('call', Date.now());
    await beginAttempts(client, [{ message_id: id, n, call, provider: provider.name }]);
    return {
      kind: 'ready',
      claimed: { message, provider, n, call, claimedAt: performance.now(), claimedAtUnixMs: Date.now() },
    };
  });
}

function over(status: StoredChat['status']): Claim {
  return { kind: 'over', result: { state: 'ended', status } };
}

async function fail(client: Db, id: string, error: string): Promise<Claim> {
  await projectChat(client, 'failed', [{ id, error, dedupe_key: 'failed' }]);
  return over('failed');
}

async function makeCall(deps: ChatDeps, claimed: ClaimedChat): Promise<ChatResult> {
  const outcome = storable(await callProvider(claimed));
  const ending = endingOf(claimed, outcome);
  await deps.recorder.record([ending]);
  await deps.pauses.note(accountAnswers(claimed, outcome));
  const afterDue = (claimed.message.late + performance.now() - claimed.claimedAt) / 1_000;
  if (outcome.kind === 'sent') handedOver.publish({ kind: 'chatapp', secondsAfterDue: [afterDue] });
  logOutcome(deps.log, claimed, outcome);
  if (outcome.kind !== 'sent' && outcome.kind !== 'refused') return toResult(deps, outcome);
  const { message_id, detail, code = null, provider_message_id = null } = ending;
  const { call, provider } = claimed;
  return apply(deps, {
    message_id,
    provider: provider.name,
    call,
    detail,
    code,
    provider_message_id,
    outcome: outcome.kind,
  });
}

/** Each number is paused separately, since it may have its own account. */
function accountAnswers({ message, provider }: ClaimedChat, outcome: ChatOutcome): AccountAnswer[] {
  const sender = message.number?.id ?? '';
  const answer = { provider: provider.name, senders: [sender] };
  if (outcome.kind === 'sent') return [answer];
  if (outcome.kind !== 'account') return [];
  return [{ ...answer, refusal: { reason: maskNumbers(outcome.detail), sender } }];
}

async function callProvider({ message, provider, ...claim }: ClaimedChat): Promise<ChatOutcome> {
  if (isClaimExpired(claim)) {
    return { kind: 'busy', detail: 'The worker was too slow to send it.' };
  }
  return provider.send(message);
}

/** Bounds a server's text and removes NUL, which Postgres rejects: the outcome could otherwise never be recorded. */
function storable(outcome: ChatOutcome): ChatOutcome {
  if (outcome.kind === 'sent') return outcome;
  const detail = outcome.detail.replaceAll('\0', '').slice(0, MAX_DETAIL_LENGTH);
  if (!('code' in outcome)) return { ...outcome, detail };
  return { ...outcome, detail, code: outcome.code.replaceAll('\0', '').slice(0, MAX_CODE_LENGTH) };
}

const ATTEMPT_OUTCOMES: { readonly [K in ChatOutcome['kind']]: AttemptOutcome } = {
  sent: 'sent',
  refused: 'refused',
  busy: 'again',
  account: 'account',
  unknown: 'unknown',
};

/** The recorded end of an attempt. It contains everything needed to apply the provider's answer later. */
function endingOf({ message: { id }, n }: ClaimedChat, outcome: ChatOutcome): AttemptEnding {
  return {
    message_id: id,
    n,
    outcome: ATTEMPT_OUTCOMES[outcome.kind],
    detail: 'detail' in outcome ? outcome.detail : null,
    ...('code' in outcome && { code: outcome.code }),
    ...(outcome.kind === 'sent' && { provider_message_id: outcome.messageId }),
  };
}

function toResult(deps: ChatDeps, outcome: Exclude<ChatOutcome, { kind: 'sent' | 'refused' }>): ChatResult {
  const next = verdict(outcome);
  if (!('again' in next)) throw new Error(`outcome ${outcome.kind} does not end a message`);
  const afterMs = next.again === 'after the pause' ? Math.min(deps.maxIntervalMs, PAUSE_RETRY_MS) : next.after;
  return { state: 'again', reason: outcome.detail, ...(afterMs !== undefined && { afterMs }) };
}

type Answer = Pick<Attempt, 'message_id' | 'provider' | 'call' | 'detail' | 'code' | 'provider_message_id'> & {
  readonly outcome: 'sent' | 'refused';
};

/** Applies a recorded answer to its message. Idempotent; if the database is unreachable, the next claim applies it. */
async function apply(deps: ChatDeps, answer: Answer): Promise<ChatResult> {
  let status: ChatStatus | undefined;
  try {
    await persist(async () => {
      status = await transaction(deps.pool, (client) => project(client, answer));
    }, APPLY_DEADLINE_MS);
  } catch (error) {
    if (!isUnreachable(error)) throw error;
    return { state: 'again', reason: UNAPPLIED };
  }
  const ended = status ?? (answer.outcome === 'sent' ? 'sent' : 'failed');
  return { state: 'ended', status: ended, provider: answer.provider as ChatProviderName };
}

async function project(client: Db, answer: Answer): Promise<ChatStatus | undefined> {
  const { message_id: id, provider, call, outcome, detail, code, provider_message_id } = answer;
  // Locks the message first: every transaction uses this order.
  await lockChatStatuses(client, [id]);
  const statuses =
    outcome === 'sent'
      ? await projectChat(client, 'sent', [
          {
            id,
            provider: provider as ChatProviderName,
            ...(provider_message_id !== null && { provider_message_id }),
            dedupe_key: endOfCall('sent', call),
          },
        ])
      : await projectChat(client, 'failed', [
          {
            id,
            error: detail ?? '',
            ...(code !== null && { error_code: code }),
            dedupe_key: endOfCall('rejected', call),
          },
        ]);
  return statuses.get(id);
}

function logOutcome(log: Logger, { message, provider, call, n, claimedAt }: ClaimedChat, outcome: ChatOutcome): void {
  const line = {
    message: message.id,
    org: message.org_id,
    provider: provider.name,
    call,
    attempt: n,
    outcome: outcome.kind,
    code: 'code' in outcome ? outcome.code : undefined,
    detail: 'detail' in outcome ? maskNumbers(outcome.detail) : undefined,
    ms: Math.round(performance.now() - claimedAt),
  };
  if (outcome.kind === 'account') log.error(line, 'provider refused our account');
  else log.info(line, 'chat-app message handed to a provider');
}
