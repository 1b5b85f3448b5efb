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
import { APPLY_DEADLINE_MS, DETAIL_LENGTH } from '../email/call.ts';
import { hasFinalOutcome, isClaimExpired, isAmbiguous } from '../email/claim.ts';
import { claimBlocker } from '../email/deliver.ts';
import { type AccountAnswer, judgePaused, makeGate, PAUSE_RETRY_MS, waitForOrganization } from '../pauses.ts';
import { persist } from '../persist.ts';
import { endOfCall } from '../email/reconcile-attempts.ts';
import { UNAPPLIED } from '../email/unapplied.ts';

/** Milliseconds for which a message waits for its turn in memory; one that would wait longer comes back. */
const PATIENCE = 1_000;
/** UTF-16 units of a provider's error code that are kept. */
const CODE_LENGTH = 100;

type Claim =
  | { readonly is: 'ready'; readonly claimed: ClaimedChat }
  | { readonly is: 'ambiguous'; readonly message: StoredChat; readonly attempt: Attempt }
  /** Its provider has answered: the answer is recorded and not yet applied. */
  | { readonly is: 'unapplied'; readonly answer: Answer }
  /** Its number sends as fast as it may. */
  | { readonly is: 'early'; readonly wait: number }
  | { readonly is: 'over'; readonly result: ChatResult };

/**
 * Claims a message, hands it over and records what became of it. Safe to repeat: an earlier call whose end nobody saw is
 * looked up at the provider before anything is sent again.
 */
export async function deliver(deps: ChatDeps, id: string): Promise<ChatResult> {
  const blocker = claimBlocker(deps);
  if (blocker !== undefined) return { state: 'again', reason: blocker };
  let found = await claimInTurn(deps, id);
  if (found.is === 'ambiguous') {
    const reconciled = await reconcileChat(deps, found.message, found.attempt);
    if (reconciled !== 'lost') return reconciled;
    // What the provider certainly does not have is claimed again, now with a new attempt.
    found = await claimInTurn(deps, id);
  }
  switch (found.is) {
    case 'ready':
      return makeCall(deps, found.claimed);
    case 'over':
      return found.result;
    case 'early':
      return { state: 'again', reason: 'Its number sends as fast as it may.', after: found.wait };
    case 'unapplied':
      return apply(deps, found.answer);
    case 'ambiguous':
      return { state: 'again', reason: 'Another worker has just made an attempt.' };
  }
}

async function claimInTurn(deps: ChatDeps, id: string): Promise<Claim> {
  const found = await claim(deps, id);
  if (found.is !== 'early' || found.wait > PATIENCE) return found;
  await sleep(found.wait);
  return claim(deps, id);
}

/** Takes a message for us if it may be sent now: from the commit on, the attempt is on record. */
async function claim(deps: ChatDeps, id: string): Promise<Claim> {
  const gate = makeGate(await deps.pauses.current());
  return transaction(deps.pool, async (client): Promise<Claim> => {
    const message = await lockChat(client, id);
    if (message?.status !== 'queued') return over(message?.status ?? 'failed');
    const [attempt] = await lastAttempts(client, [id]);
    if (attempt && isAmbiguous(attempt)) return { is: 'ambiguous', message, attempt };
    if (attempt && hasFinalOutcome(attempt)) {
      return { is: 'unapplied', answer: { ...attempt, outcome: attempt.outcome === 'sent' ? 'sent' : 'refused' } };
    }
    if (message.suspended_for !== null) return { is: 'over', result: waitForOrganization(message.suspended_for) };
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
      return { is: 'over', result: { state: 'again', reason: pause.reason, after: paused.afterMs } };
    }
    const wait = deps.pace.wait(number.id, id);
    if (wait > 0) return { is: 'early', wait };
    const n = (attempt?.n ?? 0) + 1;
    const call = newId('call', Date.now());
    await beginAttempts(client, [{ message_id: id, n, call, provider: provider.name }]);
    return {
      is: 'ready',
      claimed: { message, provider, n, call, claimedAt: performance.now(), claimedAtUnixMs: Date.now() },
    };
  });
}

function over(status: StoredChat['status']): Claim {
  return { is: 'over', result: { state: 'ended', status } };
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

/** Each number is paused by itself: its account may be its own. */
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

/** A server may say anything, at any length; Postgres takes no NUL, and what it refused could never be recorded. */
function storable(outcome: ChatOutcome): ChatOutcome {
  if (outcome.kind === 'sent') return outcome;
  const detail = outcome.detail.replaceAll('\0', '').slice(0, DETAIL_LENGTH);
  if (!('code' in outcome)) return { ...outcome, detail };
  return { ...outcome, detail, code: outcome.code.replaceAll('\0', '').slice(0, CODE_LENGTH) };
}

const ATTEMPT_OUTCOMES: { readonly [K in ChatOutcome['kind']]: AttemptOutcome } = {
  sent: 'sent',
  refused: 'refused',
  busy: 'again',
  account: 'account',
  unknown: 'unknown',
};

/** How an attempt ended, with all that it takes to apply the provider's answer later. */
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
  if (!('again' in next)) throw new Error(`${outcome.kind} ends nothing`);
  const after = next.again === 'after the pause' ? Math.min(deps.maximumInterval, PAUSE_RETRY_MS) : next.after;
  return { state: 'again', reason: outcome.detail, ...(after !== undefined && { after }) };
}

type Answer = Pick<Attempt, 'message_id' | 'provider' | 'call' | 'detail' | 'code' | 'provider_message_id'> & {
  readonly outcome: 'sent' | 'refused';
};

/** Applies a recorded answer to its message. Safe to repeat; while the database does not allow it, the next claim does it. */
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
  // The message first, as everybody locks them.
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
  if (outcome.kind === 'account') log.error(line, 'the provider refuses our account');
  else log.info(line, 'chat-app message handed to a provider');
}
